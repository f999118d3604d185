/**
 * @typedef {object} ImportRule One row. Paths are prefixes relative to the root; `*` stands for one folder, the same in the whole row. The first
 *   row that fits a file is the file's.
 * @property {string} files
 * @property {readonly string[]} mayImport
 * @property {readonly string[]} [never] exceptions from `mayImport`
 * @property {readonly string[]} [testsMayImport] what their tests may import besides
 * @property {readonly string[]} [packages] npm packages and `node:` modules that files other than tests may import; without the field, any
 * @property {string} because
 */

/**
 * @typedef {object} ImportRules
 * @property {readonly string[]} rooms
 * @property {readonly ImportRule[]} rules
 * @property {{ folders: readonly string[], openedBy: readonly string[], because: string }} drivers what opens an outside system, and the files (globs)
 *   that alone may import it; drivers may import each other
 */

/**
 * Which folder may import which. tests/architecture.test.ts holds the sources against it; the editor's rules in biome.json are generated from it
 * (scripts/editor-rules.mjs).
 *
 * @type {ImportRules}
 */
export const importRules = {
  rooms: ['web', 'client', 'services', 'actors', 'bus', 'shared'],
  rules: [
    { files: 'web/build/', mayImport: [], packages: ['node:url', 'vite'], because: 'it only builds the pages' },
    {
      files: 'web/',
      mayImport: ['web/', 'client/'],
      packages: ['preact', 'marked', 'dompurify'],
      because: 'the pages run in browsers, and talk to a server as any client does',
    },
    { files: 'client/', mayImport: ['client/'], packages: [], because: 'the client runs in browsers and depends on no other code' },
    {
      files: 'shared/contracts/',
      mayImport: ['shared/contracts/'],
      packages: ['zod'],
      because: 'the public shapes, which all rooms import, depend on no other code',
    },
    {
      files: 'shared/surfaces/',
      mayImport: ['shared/surfaces/', 'shared/contracts/', 'shared/errors/'],
      packages: ['zod'],
      because: 'pure: gateways and workers both run it',
    },
    { files: 'shared/', mayImport: ['shared/'], because: 'the lowest layer imports no layer above it' },
    { files: 'bus/nats/', mayImport: ['bus/', 'shared/'], because: 'a driver of the bus imports the bus and the lowest layer' },
    { files: 'bus/memory/', mayImport: ['bus/', 'shared/'], because: 'a driver of the bus imports the bus and the lowest layer' },
    { files: 'bus/', mayImport: ['bus/', 'shared/'], never: ['shared/storage/', 'shared/http/'], because: 'messages are data' },
    {
      files: 'actors/runtime/',
      mayImport: ['actors/runtime/', 'actors/store/', 'actors/kinds/actor-kind.ts', 'actors/effects/effect-row.ts', 'bus/', 'shared/'],
      never: ['shared/http/', 'shared/storage/database.ts', 'actors/store/sql/'],
      testsMayImport: ['actors/'],
      packages: ['lru-cache', 'xstate', 'zod'],
      because: 'the runtime names no kind of actor or effect and contains no SQL: it gets them as parameters',
    },
    {
      files: 'actors/store/conformance/',
      mayImport: ['actors/', 'bus/', 'shared/'],
      never: ['shared/http/'],
      packages: ['vitest'],
      because: 'the suite of the store runs in tests of its drivers',
    },
    {
      files: 'actors/store/sql/',
      mayImport: ['actors/', 'bus/', 'shared/'],
      never: ['shared/http/'],
      packages: [],
      because: 'a driver of the store imports the actors and the lower layers',
    },
    {
      files: 'actors/',
      mayImport: ['actors/', 'bus/', 'shared/'],
      never: ['shared/http/', 'shared/storage/database.ts', 'actors/store/sql/'],
      packages: ['lru-cache', 'xstate', 'zod'],
      because: 'behaviour is tested without a network, and the SQL of the runtime is in actors/store/sql',
    },
    {
      files: 'services/standalone/',
      mayImport: ['services/', 'actors/', 'bus/', 'shared/'],
      never: ['services/work/'],
      because: 'it starts the other services, and executes no work itself',
    },
    {
      files: 'services/router/',
      mayImport: ['services/router/', 'services/router-gateway/', 'services/router-worker/', 'actors/', 'bus/', 'shared/'],
      because: 'it starts these two services in one process, and does nothing else',
    },
    {
      files: 'services/agent/',
      mayImport: ['services/agent/', 'services/agent-gateway/', 'services/actor-host/', 'actors/', 'bus/', 'shared/'],
      because: 'it starts these two services in one process, and does nothing else',
    },
    { files: 'services/work/', mayImport: ['services/work/', 'bus/', 'shared/'], because: 'the skeleton of every worker knows no kind of work' },
    ...['router-worker', 'effect-worker'].map((worker) => ({
      files: `services/${worker}/`,
      mayImport: [`services/${worker}/`, 'services/work/', 'actors/', 'bus/', 'shared/'],
      because: 'services meet on the bus, not in memory; workers share services/work',
    })),
    {
      files: 'services/operator/',
      mayImport: ['services/operator/', 'services/router-worker/', 'services/standalone/', 'client/', 'actors/', 'bus/', 'shared/'],
      because:
        'it plays conversations in its own process, with the model calls of a router worker and the models of `npm start`; it talks to servers as a client',
    },
    { files: 'services/*/', mayImport: ['services/*/', 'actors/', 'bus/', 'shared/'], because: 'services meet on the bus, not in memory' },
  ],
  drivers: {
    folders: ['bus/nats/', 'bus/memory/', 'shared/storage/postgres/', 'shared/storage/pglite/', 'shared/storage/redis/', 'shared/storage/memory/'],
    openedBy: ['services/*/main.ts', '**/*.test.ts', '**/conformance.ts', '**/conformance/**'],
    because: 'only a main.ts, a test or a conformance suite opens a driver',
  },
};
