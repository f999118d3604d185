import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const pathOf = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** The gateways serve what this writes to `built/`, which is checked in; `tests/pages.test.ts` builds again and compares. */
export default defineConfig({
  root: pathOf('.'),
  base: '/pages/',
  resolve: { alias: [{ find: /^#client\//, replacement: pathOf('../client/') }] },
  build: {
    outDir: pathOf('built'),
    assetsDir: '',
    emptyOutDir: true,
    target: 'es2022',
    // The policy of the pages allows no `data:`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: Object.fromEntries(['chat', 'agent-console', 'router-console'].map((page) => [page, pathOf(`${page}.html`)])) },
  },
});
