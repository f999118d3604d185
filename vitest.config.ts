import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Without this row NODE_ENV=production would test an old dist/ instead of the sources.
  ssr: { resolve: { conditions: ['development', 'node', 'import', 'module', 'default'] } },
  test: {
    include: ['**/*.test.ts'],
    exclude: ['dist/**', 'node_modules/**', 'tests/node_modules/**'],
    reporters: ['default', './scripts/closing-line.mjs'],
  },
});
