import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

const pathOf = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Of libraries: assignments to functions that nothing here calls. A bundler keeps them, and the functions for them. */
const unused = [
  // A helper of Babel's.
  { file: '/dompurify/dist/purify.es.mjs', assignments: /^AsyncGenerator\.prototype\[[\s\S]*?^\};\n/m },
  // The function `marked`, beside the class.
  { file: '/marked/lib/marked.esm.js', assignments: /(?<=\})(\w+)\.(?:options|use)=[^;]+;(?:\1\.\w+=[^;]+;)+/g },
];

/** 0.6 of the 60 KB. What is called after all fails the build, or a test of the page. */
function withoutUnused(): Plugin {
  return {
    name: 'without-unused',
    transform(code, id) {
      const found = unused.find(({ file }) => id.endsWith(file));
      if (found === undefined) return null;
      const rest = code.replace(found.assignments, '');
      if (rest === code) throw new Error(`${found.file} has changed: see what it contains`);
      return { code: rest, map: null };
    },
  };
}

/** The gateways serve what this writes to `built/`, which is checked in; `tests/pages.test.ts` builds again and compares. */
export default defineConfig({
  root: pathOf('.'),
  base: '/pages/',
  resolve: { alias: [{ find: /^#client\//, replacement: pathOf('../client/') }] },
  plugins: [withoutUnused()],
  build: {
    outDir: pathOf('built'),
    assetsDir: '',
    emptyOutDir: true,
    target: 'es2022',
    // The policy of the pages allows no `data:`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      treeshake: { propertyReadSideEffects: false },
      input: Object.fromEntries(['chat', 'agent-console', 'router-console'].map((page) => [page, pathOf(`${page}.html`)])),
    },
  },
});
