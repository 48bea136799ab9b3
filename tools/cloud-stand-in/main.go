// Stands in for the provider of OpenTofu that rents machines out, so that deploy/tofu can be validated and planned without an account and without a network.
// It knows the arguments of the real one (arguments.json), answers what is computed with "unknown", and makes nothing.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"log"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

//go:embed arguments.json
var arguments []byte

// A shape is a resource, a data source or a block in one: its arguments with their kinds ("!" where they are required), its blocks,
// and what the provider computes.
type shape struct {
	Attributes map[string]string `json:"attributes"`
	Blocks     map[string]shape  `json:"blocks"`
	Computed   map[string]string `json:"computed"`
}

type described struct {
	Provider  shape            `json:"provider"`
	Resources map[string]shape `json:"resources"`
	Data      map[string]shape `json:"data"`
}

var kinds = map[string]tftypes.Type{
	"string":  tftypes.String,
	"number":  tftypes.Number,
	"bool":    tftypes.Bool,
	"strings": tftypes.List{ElementType: tftypes.String},
	"numbers": tftypes.List{ElementType: tftypes.Number},
	"map":     tftypes.Map{ElementType: tftypes.String},
}

func (s shape) block() *tfprotov5.SchemaBlock {
	made := &tfprotov5.SchemaBlock{}
	for name, kind := range s.Attributes {
		bare := strings.TrimSuffix(kind, "!")
		attribute := &tfprotov5.SchemaAttribute{Name: name, Type: kinds[bare], Required: bare != kind, Optional: bare == kind}
		attribute.Computed = name == "id"
		made.Attributes = append(made.Attributes, attribute)
	}
	for name, kind := range s.Computed {
		made.Attributes = append(made.Attributes, &tfprotov5.SchemaAttribute{Name: name, Type: kinds[kind], Computed: true})
	}
	for name, inner := range s.Blocks {
		made.BlockTypes = append(made.BlockTypes, &tfprotov5.SchemaNestedBlock{
			TypeName: name, Block: inner.block(), Nesting: tfprotov5.SchemaNestedBlockNestingModeList,
		})
	}
	return made
}

func schemas(shapes map[string]shape) map[string]*tfprotov5.Schema {
	made := map[string]*tfprotov5.Schema{}
	for name, one := range shapes {
		made[name] = &tfprotov5.Schema{Block: one.block()}
	}
	return made
}

// A standIn answers what a plan asks; what else there is in the protocol is not there.
type standIn struct {
	tfprotov5.ProviderServer
	known described
}

func (s *standIn) GetMetadata(context.Context, *tfprotov5.GetMetadataRequest) (*tfprotov5.GetMetadataResponse, error) {
	made := &tfprotov5.GetMetadataResponse{}
	for name := range s.known.Resources {
		made.Resources = append(made.Resources, tfprotov5.ResourceMetadata{TypeName: name})
	}
	for name := range s.known.Data {
		made.DataSources = append(made.DataSources, tfprotov5.DataSourceMetadata{TypeName: name})
	}
	return made, nil
}

func (s *standIn) GetProviderSchema(context.Context, *tfprotov5.GetProviderSchemaRequest) (*tfprotov5.GetProviderSchemaResponse, error) {
	return &tfprotov5.GetProviderSchemaResponse{
		Provider:          &tfprotov5.Schema{Block: s.known.Provider.block()},
		ResourceSchemas:   schemas(s.known.Resources),
		DataSourceSchemas: schemas(s.known.Data),
	}, nil
}

func (s *standIn) GetResourceIdentitySchemas(context.Context, *tfprotov5.GetResourceIdentitySchemasRequest) (*tfprotov5.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov5.GetResourceIdentitySchemasResponse{}, nil
}

func (s *standIn) PrepareProviderConfig(_ context.Context, asked *tfprotov5.PrepareProviderConfigRequest) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: asked.Config}, nil
}

func (s *standIn) ConfigureProvider(context.Context, *tfprotov5.ConfigureProviderRequest) (*tfprotov5.ConfigureProviderResponse, error) {
	return &tfprotov5.ConfigureProviderResponse{}, nil
}

func (s *standIn) StopProvider(context.Context, *tfprotov5.StopProviderRequest) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

func (s *standIn) ValidateResourceTypeConfig(context.Context, *tfprotov5.ValidateResourceTypeConfigRequest) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	return &tfprotov5.ValidateResourceTypeConfigResponse{}, nil
}

func (s *standIn) ValidateDataSourceConfig(context.Context, *tfprotov5.ValidateDataSourceConfigRequest) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	return &tfprotov5.ValidateDataSourceConfigResponse{}, nil
}

// The plan of a new resource: what is asked for, and "unknown" where the provider would compute it.
func (s *standIn) PlanResourceChange(_ context.Context, asked *tfprotov5.PlanResourceChangeRequest) (*tfprotov5.PlanResourceChangeResponse, error) {
	planned, err := filled(s.known.Resources[asked.TypeName], asked.ProposedNewState, func(_ string, kind tftypes.Type) any { return tftypes.UnknownValue })
	return &tfprotov5.PlanResourceChangeResponse{PlannedState: planned}, err
}

func (s *standIn) ApplyResourceChange(_ context.Context, asked *tfprotov5.ApplyResourceChangeRequest) (*tfprotov5.ApplyResourceChangeResponse, error) {
	return &tfprotov5.ApplyResourceChangeResponse{
		NewState:    asked.PriorState,
		Diagnostics: []*tfprotov5.Diagnostic{{Severity: tfprotov5.DiagnosticSeverityError, Summary: "the stand-in makes nothing"}},
	}, nil
}

// What a data source finds: a text that names the attribute.
func (s *standIn) ReadDataSource(_ context.Context, asked *tfprotov5.ReadDataSourceRequest) (*tfprotov5.ReadDataSourceResponse, error) {
	found, err := filled(s.known.Data[asked.TypeName], asked.Config, func(name string, kind tftypes.Type) any {
		if kind.Is(tftypes.String) {
			return "stand-in-" + name
		}
		return nil
	})
	return &tfprotov5.ReadDataSourceResponse{State: found}, err
}

// The value with what is computed filled in where it is null.
func filled(one shape, value *tfprotov5.DynamicValue, fill func(string, tftypes.Type) any) (*tfprotov5.DynamicValue, error) {
	schema := &tfprotov5.Schema{Block: one.block()}
	kind := schema.ValueType()
	read, err := value.Unmarshal(kind)
	if err != nil || read.IsNull() {
		return value, err
	}
	parts := map[string]tftypes.Value{}
	if err := read.As(&parts); err != nil {
		return nil, err
	}
	for _, attribute := range schema.Block.Attributes {
		if attribute.Computed && parts[attribute.Name].IsNull() {
			parts[attribute.Name] = tftypes.NewValue(attribute.Type, fill(attribute.Name, attribute.Type))
		}
	}
	made, err := tfprotov5.NewDynamicValue(kind, tftypes.NewValue(kind, parts))
	return &made, err
}

func main() {
	made := &standIn{}
	if err := json.Unmarshal(arguments, &made.known); err != nil {
		log.Fatal(err)
	}
	server := func() tfprotov5.ProviderServer { return made }
	if err := tf5server.Serve("tunnelmark.invalid/tools/cloud-stand-in", server); err != nil {
		log.Fatal(err)
	}
}
