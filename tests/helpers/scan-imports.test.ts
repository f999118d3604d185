import { describe, expect, it } from 'vitest';
import { scanImports } from './scan-imports.ts';

const specifiersOf = (source: string) => scanImports(source).imports.map(({ specifier }) => specifier);

describe('scanImports', () => {
  it.each([
    ['a comment that opens and never closes', 'const a = 1;\n/* and so on'],
    ['a string over the end of its line', `const a = 'one\ntwo';`],
    ['a template that is cut off', 'const a = `one ${two'],
    ['an import without a source', 'import { a };'],
  ])('throws at %s instead of finding nothing', (_what, source) => {
    expect(() => scanImports(source)).toThrow(/line \d/);
  });

  it.each([
    ['a line comment', `// import { a } from './a.ts';`],
    ['a block comment', `/* import './a.ts';\n export * from './b.ts' */`],
    ['a string', `const text = "import { a } from './a.ts'";`],
    ['a string with an escaped quote', `const text = 'it\\'s import("./a.ts")';`],
    ['a template', "const text = `import { a } from './a.ts'`;"],
    ['a regular expression', `const quoted = /import '[/"]x'/g;`],
    ['a regular expression after return', `function f() { return /'/; } const g = /\\/'/;`],
    ['a property of that name', `const table = { import: './a.ts', from: './b.ts' }; table.import('./c.ts');`],
    ['import.meta', `const here = import.meta.url;`],
    ['an export of its own', `export const a = './a.ts'; export default function () {} export type { B }; export { a as c };`],
  ])('finds no import in %s', (_what, source) => {
    expect(scanImports(source)).toEqual({ imports: [], reExportLines: [] });
  });

  it.each([
    ['names', `import { a, b as c, type D } from './a.ts';`],
    ['a default and names', `import a, { b } from "./a.ts"`],
    ['a namespace', `import * as a from './a.ts';`],
    ['types', `import type { A } from './a.ts';`],
    ['a name that is called from', `import { from } from './a.ts';`],
    ['nothing but its effect', `import './a.ts';`],
    ['several lines and comments', `import {\n  a, // one '\n  b, /* two */\n} from\n  './a.ts';`],
    ['a dynamic import', `const a = await import('./a.ts');`],
    ['a dynamic import by a plain template', 'const a = await import(`./a.ts`);'],
    ['a dynamic import inside a template', "const a = `one ${`two ${{ b: await import('./a.ts') }}`} three`;"],
    ['an import type', `type A = import('./a.ts').A;`],
    ['a require', `const a = require('./a.ts');`],
    ['a division before it', `const half = total / 2; const b = [1] / 1; import('./a.ts');`],
  ])('finds an import of %s', (_what, source) => {
    expect(specifiersOf(source)).toEqual(['./a.ts']);
  });

  it('finds every import and the line it begins on', () => {
    const { imports } = scanImports(`import a from './a.ts';\nconst text = \`\n\n\`;\nimport {\n  b,\n} from './b.ts';\nexport * from './c.ts';`);

    expect(imports).toEqual([
      { specifier: './a.ts', line: 1 },
      { specifier: './b.ts', line: 5 },
      { specifier: './c.ts', line: 8 },
    ]);
  });

  it('handles a specifier that looks like a punctuation mark', () => {
    expect(specifiersOf(`import a from '.'\nimport b from '{'\nexport type { c } from '}'\nimport d from './d.ts'`)).toEqual(['.', '{', '}', './d.ts']);
  });

  it('marks a computed import', () => {
    expect(specifiersOf('import(name); import(`./${name}.ts`);')).toEqual([null, null]);
  });

  it.each([
    ['everything', `export * from './a.ts';`],
    ['a namespace', `export * as a from './a.ts';`],
    ['a name', `export { a } from './a.ts';`],
    ['a type', `export type { A } from './a.ts';`],
    ['an imported name', `import { x as a } from './a.ts'; export { a as b };`],
    ['an imported default', `import a, { x } from './a.ts'; export { a };`],
  ])('finds the passing on of %s', (_what, source) => {
    expect(scanImports(source).reExportLines).toEqual([1]);
  });
});
