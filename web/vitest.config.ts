import { defineConfig } from "vitest/config";

// The timeout ends a test that hangs; on a busy machine, tests that draw all charts take longer than the usual 5 s.
export default defineConfig({
  test: { environment: "jsdom", include: ["tests/**/*.test.ts"], pool: "threads", testTimeout: 60_000 },
});
