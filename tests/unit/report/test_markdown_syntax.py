"""Text in Markdown stays text, but for what a sentence of ours marks as code."""

from tunnelmark.report.markdown_syntax import prose, rows, safe


def test_what_programs_print_does_not_become_markup() -> None:
    assert safe("a*b_c `d` [e] <f>\ng") == r"a\*b\_c \`d\` \[e\] &lt;f&gt; g"


def test_commands_in_sentences_can_be_copied() -> None:
    assert prose("`tunnelmark repeat` and `a_b` say how *much*") == r"`tunnelmark repeat` and `a_b` say how \*much\*"


def test_a_backtick_without_its_pair_is_text() -> None:
    assert prose("the ` of a shell_script") == r"the \` of a shell\_script"


def test_a_cell_stays_in_its_row() -> None:
    assert rows(["one"], [["`a | b`\nc"]]).splitlines()[-1] == r"| `a \| b` c |"
