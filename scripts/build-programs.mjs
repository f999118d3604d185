import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

/**
 * Writes `programs/` of the folder that is its argument, dist/ or what becomes it: each program in few files, with the packages that it uses, since Node finds and reads a thousand small files more
 * slowly than it runs them (docs/adr/0122). Runs after tsc, whose file of each program then imports the one written here.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const dist = resolve(root, process.argv[2] ?? 'dist');
const programs = join(dist, 'programs');

/** What Node is started with, and the thread that starts from a file of its own. */
const programSources = [...readdirSync(join(root, 'services')).map((name) => `services/${name}/main.ts`), 'shared/config/read-document-thread.ts'].filter(
  (path) => existsSync(join(root, path)),
);
/** Evaluated before each of them, so that it is there for their first error. */
const mapStacks = 'shared/lifecycle/map-stacks.ts';
const sources = [...programSources, mapStacks];

/** Left in node_modules: packages that read files beside their own, and what only tracing to a collector loads, and late. */
const external = [/^@electric-sql\//, /^@opentelemetry\/(?!api$)/];

/** A module that reads files beside its own still finds them: all programs are in one folder, from which each has one path. @type {import('rolldown').Plugin} */
const ownPlaces = {
  name: 'own places',
  transform: {
    filter: { id: /\.ts$/, code: 'import.meta.url' },
    handler: (code, id) => {
      const place = JSON.stringify(relative(programs, builtFile(relative(root, id))));
      return code.replaceAll('import.meta.url', `new URL(${place}, import.meta.url).href`);
    },
  },
};

const build = await rolldown({
  cwd: root,
  input: Object.fromEntries(sources.map((source) => [nameOf(source), source])),
  external,
  platform: 'node',
  tsconfig: 'tsconfig.json', // its paths lead to the sources
  plugins: [ownPlaces],
  treeshake: { moduleSideEffects: true }, // whatever a package says of its own
  logLevel: 'silent',
});
const { output } = await build.write({
  dir: programs,
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: 'part-[name].js',
  keepNames: true, // errors and logs show those of classes
  // V8 keeps the text of each file: with one character beyond Latin-1 it takes two bytes for each, and comments are a fifth.
  charset: 'ascii',
  comments: false,
  sourcemap: true,
  sourcemapExcludeSources: true,
});
await build.close();

for (const source of programSources) {
  const file = builtFile(source);
  const imports = [mapStacks, source].map((one) => `import '${relative(dirname(file), join(programs, `${nameOf(one)}.js`))}';\n`);
  writeFileSync(file, imports.join(''));
}
writeFileSync(join(programs, 'licences.txt'), licencesOf(output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))));

/** @param {string} source relative to the root */
function nameOf(source) {
  return basename(source) === 'main.ts' ? basename(dirname(source)) : basename(source, '.ts');
}

/** What tsc makes of a source. @param {string} source relative to the root */
function builtFile(source) {
  return join(dist, source.replace(/\.ts$/, '.js'));
}

/** Those of the packages whose code is in the programs: they ask to go with every copy. @param {readonly string[]} modules */
function licencesOf(modules) {
  const folders = new Set(modules.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  return [...folders]
    .sort()
    .map(licenceOf)
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/** @param {string} folder of a package */
function licenceOf(folder) {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
  const owner = `by ${author?.name ?? author ?? 'its authors'}`;
  return `${[`${name} ${version}: ${license}`, ...(texts.length > 0 ? texts : [owner])].join('\n\n')}\n`;
}
