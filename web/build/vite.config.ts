import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

const pathOf = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Of libraries, what nothing here uses and a bundler keeps: functions that are assigned to something, and lists. */
const unused = [
  // A helper of Babel's.
  { file: '/dompurify/dist/purify.es.mjs', part: /^AsyncGenerator\.prototype\[[\s\S]*?^\};\n/m, rest: '' },
  // The names that it allows by default: markdown.ts names its own. Nothing is allowed by an empty list.
  {
    file: '/dompurify/dist/purify.es.mjs',
    part: /^const (html\$1|svg\$1|svgFilters|svgDisallowed|mathMl\$1|mathMlDisallowed|html|svg|mathMl|xml) = freeze\(\[[^\]]*\]\);$/gm,
    rest: 'const $1 = [];',
  },
  // The function `marked`, beside the class.
  { file: '/marked/lib/marked.esm.js', part: /(?<=\})(\w+)\.(?:options|use)=[^;]+;(?:\1\.\w+=[^;]+;)+/g, rest: '' },
];

/** 3 of the 60 KB. What is called after all fails the build, or a test of the page. */
function withoutUnused(): Plugin {
  return {
    name: 'without-unused',
    transform(code, id) {
      const found = unused.filter(({ file }) => id.endsWith(file));
      if (found.length === 0) return null;
      return { code: found.reduce(without, code), map: null };
    },
  };
}

function without(code: string, { file, part, rest }: (typeof unused)[number]): string {
  const left = code.replace(part, rest);
  if (left === code) throw new Error(`${file} has changed: see what it contains`);
  return left;
}

/** What more than the consoles have in common: one file, since each is a request, and a connection, of every browser that has not cached it. */
const common = /\/node_modules\/preact\/|\/client\/|\/web\/(?:breathe|changes|use-changes|while-shown)\.ts$/;

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
      output: { codeSplitting: { groups: [{ name: 'common', test: common }] } },
    },
  },
});
