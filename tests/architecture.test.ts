import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { editorRules } from '../scripts/editor-rules.mjs';
import { importRules } from '../scripts/import-rules.mjs';
import { checkArchitecture } from './helpers/check-architecture.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

describe('the sources', () => {
  it('keep to the borders between rooms, without cycles and without barrels', () => {
    expect(checkArchitecture(root, importRules).violations).toEqual([]);
  });

  it('are all read: as many files as the folders hold', () => {
    const { files } = checkArchitecture(root, importRules);
    const onDisk = importRules.rooms.flatMap((room) => readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }));

    expect(files.length).toBe(onDisk.filter((path) => /\.tsx?$/.test(path) && !path.startsWith('node_modules/')).length);
    expect(files.length).toBeGreaterThan(40);
  });

  it('are found by every tool: types and development lead to the sources, all else to the build', () => {
    const { imports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

    // In this order: the first condition that fits wins, and without `types` the linter sees neither cycles nor promises across rooms.
    // Nothing imports the pages.
    const imported = importRules.rooms.filter((room) => room !== 'web');
    const expected = imported.map((room) => [
      `#${room}/*.ts`,
      [
        ['types', `./${room}/*.ts`],
        ['development', `./${room}/*.ts`],
        ['default', `./dist/${room}/*.js`],
      ],
    ]);
    const found = Object.entries(imports).map(([pattern, conditions]) => [pattern, Object.entries(Object(conditions))]);
    expect(found).toHaveLength(expected.length);
    expect(found).toEqual(expect.arrayContaining(expected));
  });
});

describe('the editor', () => {
  it('shows the same rules: `npm run format` writes them to biome.json', () => {
    const { overrides } = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8'));

    expect(overrides).toEqual(editorRules(importRules));
  });
});

describe('the checker', () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });

  /** A small tree that keeps all rules, but for the files given. */
  function violationsWith(files: Record<string, string>): string[] {
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-architecture-'));
    folders.push(folder);
    const deployment: Record<string, string> = {
      'package.json': readFileSync(join(root, 'package.json'), 'utf8'),
      'client/agent-client.ts': 'export const client = 1;',
      'web/chat/main.tsx': `import { render } from 'preact';\nimport { client } from '#client/agent-client.ts';\nrender(<p>{client} or <br /></p>, client);`,
      'shared/clock.ts': 'export const clock = 1;',
      'shared/http/client.ts': 'export const client = 1;',
      'shared/contracts/session.ts': `import { z } from 'zod';\nexport const session = z.object({});`,
      'shared/storage/database.ts': `import { clock } from '../clock.ts';\nexport const database = clock;`,
      'shared/storage/pglite/open-pglite.ts': `import { database } from '../database.ts';\nexport const pglite = database;`,
      'bus/bus.ts': `import { clock } from '#shared/clock.ts';\nexport const bus = clock;`,
      'bus/conformance.ts': `import { memoryBus } from './memory/memory-bus.ts';\nimport { it } from 'vitest';\nexport const suite = [memoryBus, it];`,
      'bus/memory/memory-bus.ts': `import { database } from '#shared/storage/database.ts';\nimport { bus } from '../bus.ts';\nexport const memoryBus = [database, bus];`,
      'actors/kinds/run/machine.ts': `import { setup } from 'xstate';\nimport { bus } from '#bus/bus.ts';\nexport const machine = [setup, bus];`,
      'actors/store/sql/rows.ts': `import { database } from '#shared/storage/database.ts';\nexport const rows = [database];`,
      'actors/store/conformance/suite.ts': `import { it } from 'vitest';\nimport { rows } from '../sql/rows.ts';\nexport const suite = [it, rows];`,
      'actors/kinds/run/machine.test.ts': `import fc from 'fast-check';\nimport { memoryBus } from '#bus/memory/memory-bus.ts';\nexport default [fc, memoryBus];`,
      'scripts/servers/start.mjs': 'export const startServer = 1;',
      'bus/memory/memory-bus.test.ts': `import { startServer } from '../../scripts/servers/start.mjs';\nimport { memoryBus } from './memory-bus.ts';\nexport default [startServer, memoryBus];`,
      'services/one/service.ts': `import { machine } from '#actors/kinds/run/machine.ts';\nimport { help } from './help.ts';\nexport const service = [machine, help];`,
      'services/one/help.ts': 'export const help = 1;',
      'scripts/servers/test-services.mjs': 'export const startNatsServer = 1;',
      'services/one/service.test.ts': `import { startNatsServer } from '../../scripts/servers/test-services.mjs';\nexport default startNatsServer;`,
      'services/one/main.ts': `import { pglite } from '#shared/storage/pglite/open-pglite.ts';\nimport { service } from './service.ts';\nexport const main = [pglite, service];`,
      'services/standalone/main.ts': `import { memoryBus } from '#bus/memory/memory-bus.ts';\nimport { service } from '#services/one/service.ts';\nexport const main = [memoryBus, service];`,
      ...files,
    };
    for (const [path, text] of Object.entries(deployment)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    return checkArchitecture(folder, importRules).violations;
  }

  it('finds nothing in a tree that keeps all rules', () => {
    expect(violationsWith({})).toEqual([]);
  });

  const oneFile: [string, string, string, RegExp][] = [
    ['a client that imports the lowest layer', 'client/x.ts', `import { clock } from '#shared/clock.ts';`, /depends on no other code/],
    ['a client that imports a package', 'client/x.ts', `import { createParser } from 'eventsource-parser';`, /package eventsource-parser/],
    ['a client that imports a part of Node', 'client/x.ts', `import { join } from 'node:path';`, /package node:path/],
    ['a page that imports the lowest layer', 'web/x.tsx', `import { clock } from '#shared/clock.ts';`, /as any client does/],
    ['a page that imports a contract', 'web/x.tsx', `import type { session } from '#shared/contracts/session.ts';`, /as any client does/],
    ['a page that imports another package', 'web/x.tsx', `import { z } from 'zod';`, /package zod/],
    ['a page behind its JSX', 'web/x.tsx', `const x = <p>a</p>;\nimport { clock } from '#shared/clock.ts';`, /x\.tsx:2 may not import/],
    ['a gateway that imports a page', 'services/one/x.ts', `import '../../web/chat/main.tsx';`, /leaves its room/],
    ['a gateway that imports the client', 'services/one/x.ts', `import { client } from '#client/agent-client.ts';`, /services meet on the bus/],
    ['a contract that imports the lowest layer', 'shared/contracts/x.ts', `import { clock } from '../clock.ts';`, /depend on no other code/],
    ['a contract that imports another package', 'shared/contracts/x.ts', `import pg from 'pg';`, /package pg: the public shapes/],
    ['a contract that imports a part of Node', 'shared/contracts/x.ts', `import { join } from 'node:path';`, /package node:path/],
    ['the lowest layer, importing the bus', 'shared/x.ts', `import { bus } from '#bus/bus.ts';`, /x\.ts:1 may not import bus\/bus\.ts: the lowest layer/],
    ['the lowest layer, importing an actor', 'shared/x.ts', `import { machine } from '#actors/kinds/run/machine.ts';`, /imports no layer above it/],
    ['a bus that imports an actor', 'bus/x.ts', `import { machine } from '#actors/kinds/run/machine.ts';`, /messages are data/],
    ['a bus that imports storage', 'bus/x.ts', `import { database } from '#shared/storage/database.ts';`, /messages are data/],
    ['a bus that imports HTTP', 'bus/x.ts', `import { client } from '#shared/http/client.ts';`, /messages are data/],
    ['a driver of the bus that imports an actor', 'bus/memory/x.ts', `import { machine } from '#actors/kinds/run/machine.ts';`, /a driver of the bus/],
    ['an actor that imports a driver of the bus', 'actors/x.ts', `import { memoryBus } from '#bus/memory/memory-bus.ts';`, /opens a driver/],
    ['an actor that imports a driver of storage', 'actors/x.ts', `import { pglite } from '#shared/storage/pglite/open-pglite.ts';`, /opens a driver/],
    ['an actor that imports the database', 'actors/x.ts', `import type { Database } from '#shared/storage/database.ts';`, /SQL of the runtime/],
    ['an actor that imports SQL', 'actors/runtime/x.ts', `import { rows } from '../store/sql/rows.ts';`, /contains no SQL/],
    ['an actor’s test that imports SQL', 'actors/runtime/x.test.ts', `import { rows } from '../store/sql/rows.ts';`, /contains no SQL/],
    ['an actor that imports a test library', 'actors/x.ts', `import { it } from 'vitest';`, /package vitest/],
    ['an actor that imports HTTP', 'actors/x.ts', `import { client } from '#shared/http/client.ts';`, /without a network/],
    ['an actor that imports a service', 'actors/x.ts', `import { help } from '#services/one/help.ts';`, /without a network/],
    ['a runtime that imports a kind of actor', 'actors/runtime/x.ts', `import { machine } from '../kinds/run/machine.ts';`, /names no kind/],
    ['an actor that imports an I/O package', 'actors/x.ts', `import { request } from 'undici';`, /package undici/],
    ['an actor that imports a part of Node', 'actors/x.ts', `import { readFile } from 'node:fs/promises';`, /package node:fs\/promises/],
    ['an actor’s test that imports a service', 'actors/x.test.ts', `import { help } from '#services/one/help.ts';`, /without a network/],
    ['a service that imports another', 'services/two/x.ts', `import { help } from '#services/one/help.ts';`, /services meet on the bus/],
    ['a service that imports standalone', 'services/two/x.ts', `import { main } from '#services/standalone/main.ts';`, /services meet on the bus/],
    [
      'the process of the router, importing a service that it does not start',
      'services/router/x.ts',
      `import { help } from '#services/one/help.ts';`,
      /starts these two/,
    ],
    [
      'the process of the agent server, importing a service that it does not start',
      'services/agent/x.ts',
      `import { help } from '#services/one/help.ts';`,
      /starts these two/,
    ],
    ['a driver opened outside main.ts', 'services/one/x.ts', `import { pglite } from '#shared/storage/pglite/open-pglite.ts';`, /opens a driver/],
    ['a driver opened by a main.ts further down', 'services/one/a/main.ts', `import { memoryBus } from '#bus/memory/memory-bus.ts';`, /opens a driver/],
    ['a driver opened in the lowest layer', 'shared/x.ts', `import { pglite } from './storage/pglite/open-pglite.ts';`, /opens a driver/],
    ['a relative path out of its room', 'services/two/x.ts', `import { clock } from '../../shared/clock.ts';`, /leaves its room/],
    ['a relative path into another service', 'services/two/x.ts', `import { help } from '../one/help.ts';`, /leaves its room/],
    ['a script outside of a test', 'bus/memory/x.ts', `import { startServer } from '../../scripts/servers/start.mjs';`, /leaves its room/],
    ['a # path into its own room', 'shared/x.ts', `import { clock } from '#shared/clock.ts';`, /paths are relative/],
    ['a path out of the clone', 'shared/x.ts', `import x from '../../elsewhere.ts';`, /is no file/],
    [
      'a service that starts a test server',
      'services/one/x.ts',
      `import { startNatsServer } from '../../scripts/servers/test-services.mjs';`,
      /leaves its room/,
    ],
    ['a file that is not there', 'shared/x.ts', `import { gone } from './gone.ts';`, /x\.ts:1 imports '\.\/gone\.ts', which is no file/],
    ['an alias that is not there', 'shared/x.ts', `import { gone } from '#gone/x.ts';`, /is no file/],
    ['a specifier without its ending', 'shared/x.ts', `import { clock } from './clock';`, /is no file/],
    ['a type import', 'shared/x.ts', `import type { Bus } from '#bus/bus.ts';`, /imports no layer above it/],
    ['a type in place', 'shared/x.ts', `export type Bus = import('#bus/bus.ts').Bus;`, /imports no layer above it/],
    ['a dynamic import', 'shared/x.ts', `export const bus = await import('#bus/bus.ts');`, /imports no layer above it/],
    ['a computed import', 'shared/x.ts', 'export const load = (name: string) => import(`./${name}.ts`);', /computed/],
    ['an import for its effect', 'shared/x.ts', `import '#bus/bus.ts';`, /imports no layer above it/],
    ['a require', 'shared/x.ts', `const bus = require('#bus/bus.ts');`, /imports no layer above it/],
    ['an import over several lines', 'shared/x.ts', `import {\n  bus,\n} from '#bus/bus.ts';`, /imports no layer above it/],
    ['a file that imports itself', 'shared/x.ts', `import { x } from './x.ts';`, /import cycle: shared\/x\.ts → shared\/x\.ts/],
    ['a barrel of everything', 'shared/x.ts', `export * from './clock.ts';`, /passes another file's names on/],
    ['a barrel of one name', 'shared/x.ts', `export { clock } from './clock.ts';`, /passes another file's names on/],
    ['a barrel of types', 'shared/x.ts', `export type { Clock } from './clock.ts';`, /passes another file's names on/],
    ['a barrel in two steps', 'shared/x.ts', `import { clock as time } from './clock.ts';\nexport { time as clock };`, /x\.ts:2 passes/],
  ];
  it.each(oneFile)('refuses %s', (_what, path, text, complaint) => {
    const violations = violationsWith({ [path]: text });

    expect(violations.filter((violation) => complaint.test(violation))).not.toEqual([]);
    expect(violations.every((violation) => violation.includes(path))).toBe(true);
  });

  it('refuses a cycle of types over two rooms, naming every file of it', () => {
    const violations = violationsWith({
      'bus/a.ts': `import type { B } from '#actors/b.ts';`,
      'actors/b.ts': `import { c } from './c.ts';`,
      'actors/c.ts': `import type { A } from '#bus/a.ts';`,
    });

    expect(violations.filter((violation) => violation.includes('cycle'))).toEqual(['import cycle: actors/b.ts → actors/c.ts → bus/a.ts → actors/b.ts']);
  });

  it('refuses a folder that no rule knows', () => {
    const deployment = { ...importRules, rules: importRules.rules.filter(({ files }) => files !== 'bus/') };
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-architecture-'));
    folders.push(folder);
    for (const room of importRules.rooms) mkdirSync(join(folder, room));
    writeFileSync(join(folder, 'package.json'), readFileSync(join(root, 'package.json')));
    writeFileSync(join(folder, 'bus', 'a.ts'), `import { b } from './b.ts';`);
    writeFileSync(join(folder, 'bus', 'b.ts'), 'export const b = 1;');

    expect(checkArchitecture(folder, deployment).violations).toEqual(['bus/a.ts:1 lies in no room that the rules know']);
  });
});
