import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { type Architecture, checkArchitecture } from './helpers/check-architecture.ts';

/** Which room may import which. biome.json has the same rules for the editor; this copy holds where a lint is disabled. */
const architecture: Architecture = {
  rooms: ['services', 'actors', 'bus', 'shared'],
  rules: [
    {
      files: 'shared/contracts/',
      mayImport: ['shared/contracts/'],
      packages: ['zod'],
      because: 'the seam every other room agrees on must not pull code in',
    },
    { files: 'shared/', mayImport: ['shared/'], because: 'the floor has no stairs' },
    { files: 'bus/nats/', mayImport: ['bus/', 'shared/'], because: 'a driver of the bus knows the floor and the bus' },
    { files: 'bus/memory/', mayImport: ['bus/', 'shared/'], because: 'a driver of the bus knows the floor and the bus' },
    { files: 'bus/', mayImport: ['bus/', 'shared/'], never: ['shared/storage/', 'shared/http/'], because: 'messages are data' },
    {
      files: 'actors/',
      mayImport: ['actors/', 'bus/', 'shared/'],
      never: ['shared/http/'],
      packages: ['xstate', 'zod'],
      because: 'behaviour is tested without a network',
    },
    { files: 'services/standalone/', mayImport: ['services/', 'actors/', 'bus/', 'shared/'], because: 'it starts the others, and nothing more' },
    { files: 'services/*/', mayImport: ['services/*/', 'actors/', 'bus/', 'shared/'], because: 'processes meet on the bus, not in memory' },
  ],
  drivers: {
    folders: ['bus/nats/', 'bus/memory/', 'shared/storage/postgres/', 'shared/storage/pglite/', 'shared/storage/redis/', 'shared/storage/memory/'],
    openedBy: (file) => /^services\/[^/]+\/main\.ts$|\.test\.ts$|\/conformance(?:\.ts$|\/)/.test(file),
    because: 'one door per outside system: only a main.ts, a test or a conformance suite opens a driver',
  },
};

const root = fileURLToPath(new URL('..', import.meta.url));

describe('the sources', () => {
  it('keep to the borders between rooms, without cycles and without barrels', () => {
    expect(checkArchitecture(root, architecture).violations).toEqual([]);
  });

  it('are all read: as many files as the folders hold', () => {
    const { files } = checkArchitecture(root, architecture);
    const onDisk = architecture.rooms.flatMap((room) => readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }));

    expect(files.length).toBe(onDisk.filter((path) => path.endsWith('.ts')).length);
    expect(files.length).toBeGreaterThan(40);
  });

  it('are found by every tool: types and development lead to the sources, all else to the build', () => {
    const { imports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

    // In this order: the first matching condition wins, and without `types` the linter sees neither cycles nor promises across rooms.
    const expected = architecture.rooms.map((room) => [
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

describe('the checker', () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });

  /** A small repository without violations, except for the given files. */
  function violationsWith(files: Record<string, string>): string[] {
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-architecture-'));
    folders.push(folder);
    const deployment: Record<string, string> = {
      'package.json': readFileSync(join(root, 'package.json'), 'utf8'),
      'shared/clock.ts': 'export const clock = 1;',
      'shared/http/client.ts': 'export const client = 1;',
      'shared/contracts/session.ts': `import { z } from 'zod';\nexport const session = z.object({});`,
      'shared/storage/database.ts': `import { clock } from '../clock.ts';\nexport const database = clock;`,
      'shared/storage/pglite/open-pglite.ts': `import { database } from '../database.ts';\nexport const pglite = database;`,
      'bus/bus.ts': `import { clock } from '#shared/clock.ts';\nexport const bus = clock;`,
      'bus/conformance.ts': `import { memoryBus } from './memory/memory-bus.ts';\nimport { it } from 'vitest';\nexport const suite = [memoryBus, it];`,
      'bus/memory/memory-bus.ts': `import { database } from '#shared/storage/database.ts';\nimport { bus } from '../bus.ts';\nexport const memoryBus = [database, bus];`,
      'actors/run/machine.ts': `import { setup } from 'xstate';\nimport { bus } from '#bus/bus.ts';\nimport { database } from '#shared/storage/database.ts';\nexport const machine = [setup, bus, database];`,
      'actors/run/machine.test.ts': `import fc from 'fast-check';\nimport { memoryBus } from '#bus/memory/memory-bus.ts';\nexport default [fc, memoryBus];`,
      'scripts/servers.mjs': 'export const startServer = 1;',
      'bus/memory/memory-bus.test.ts': `import { startServer } from '../../scripts/servers.mjs';\nimport { memoryBus } from './memory-bus.ts';\nexport default [startServer, memoryBus];`,
      'services/one/service.ts': `import { machine } from '#actors/run/machine.ts';\nimport { help } from './help.ts';\nexport const service = [machine, help];`,
      'services/one/help.ts': 'export const help = 1;',
      'scripts/test-services.mjs': 'export const startNatsServer = 1;',
      'services/one/service.test.ts': `import { startNatsServer } from '../../scripts/test-services.mjs';\nexport default startNatsServer;`,
      'services/one/main.ts': `import { pglite } from '#shared/storage/pglite/open-pglite.ts';\nimport { service } from './service.ts';\nexport const main = [pglite, service];`,
      'services/standalone/main.ts': `import { memoryBus } from '#bus/memory/memory-bus.ts';\nimport { service } from '#services/one/service.ts';\nexport const main = [memoryBus, service];`,
      ...files,
    };
    for (const [path, text] of Object.entries(deployment)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    return checkArchitecture(folder, architecture).violations;
  }

  it('finds nothing in a repository without violations', () => {
    expect(violationsWith({})).toEqual([]);
  });

  const oneFile: [string, string, string, RegExp][] = [
    ['a contract that imports the floor', 'shared/contracts/x.ts', `import { clock } from '../clock.ts';`, /must not pull code in/],
    ['a contract that imports another package', 'shared/contracts/x.ts', `import pg from 'pg';`, /package pg: the seam/],
    ['a contract that imports a part of Node', 'shared/contracts/x.ts', `import { join } from 'node:path';`, /package node:path/],
    ['a floor that imports the bus', 'shared/x.ts', `import { bus } from '#bus/bus.ts';`, /x\.ts:1 may not import bus\/bus\.ts: the floor has no stairs/],
    ['a floor that imports an actor', 'shared/x.ts', `import { machine } from '#actors/run/machine.ts';`, /the floor has no stairs/],
    ['a bus that imports an actor', 'bus/x.ts', `import { machine } from '#actors/run/machine.ts';`, /messages are data/],
    ['a bus that imports storage', 'bus/x.ts', `import { database } from '#shared/storage/database.ts';`, /messages are data/],
    ['a bus that imports HTTP', 'bus/x.ts', `import { client } from '#shared/http/client.ts';`, /messages are data/],
    ['a driver of the bus that imports an actor', 'bus/memory/x.ts', `import { machine } from '#actors/run/machine.ts';`, /a driver of the bus/],
    ['an actor that imports a driver of the bus', 'actors/x.ts', `import { memoryBus } from '#bus/memory/memory-bus.ts';`, /one door/],
    ['an actor that imports a driver of storage', 'actors/x.ts', `import { pglite } from '#shared/storage/pglite/open-pglite.ts';`, /one door/],
    ['an actor that imports HTTP', 'actors/x.ts', `import { client } from '#shared/http/client.ts';`, /without a network/],
    ['an actor that imports a service', 'actors/x.ts', `import { help } from '#services/one/help.ts';`, /without a network/],
    ['an actor that imports an I/O package', 'actors/x.ts', `import { request } from 'undici';`, /package undici/],
    ['an actor that imports a part of Node', 'actors/x.ts', `import { readFile } from 'node:fs/promises';`, /package node:fs\/promises/],
    ['an actor’s test that imports a service', 'actors/x.test.ts', `import { help } from '#services/one/help.ts';`, /without a network/],
    ['a service that imports another', 'services/two/x.ts', `import { help } from '#services/one/help.ts';`, /processes meet on the bus/],
    ['a service that imports standalone', 'services/two/x.ts', `import { main } from '#services/standalone/main.ts';`, /processes meet on the bus/],
    ['a driver opened outside main.ts', 'services/one/x.ts', `import { pglite } from '#shared/storage/pglite/open-pglite.ts';`, /one door/],
    ['a driver opened by a main.ts further down', 'services/one/a/main.ts', `import { memoryBus } from '#bus/memory/memory-bus.ts';`, /one door/],
    ['a driver opened on the floor', 'shared/x.ts', `import { pglite } from './storage/pglite/open-pglite.ts';`, /one door/],
    ['a relative path out of its room', 'services/two/x.ts', `import { clock } from '../../shared/clock.ts';`, /leaves its room/],
    ['a relative path into another service', 'services/two/x.ts', `import { help } from '../one/help.ts';`, /leaves its room/],
    ['a script outside of a test', 'bus/memory/x.ts', `import { startServer } from '../../scripts/servers.mjs';`, /leaves its room/],
    ['a # path into its own room', 'shared/x.ts', `import { clock } from '#shared/clock.ts';`, /paths are relative/],
    ['a path out of the clone', 'shared/x.ts', `import x from '../../elsewhere.ts';`, /is no file/],
    ['a service that starts a test server', 'services/one/x.ts', `import { startNatsServer } from '../../scripts/test-services.mjs';`, /leaves its room/],
    ['a file that is not there', 'shared/x.ts', `import { gone } from './gone.ts';`, /x\.ts:1 imports '\.\/gone\.ts', which is no file/],
    ['an alias that is not there', 'shared/x.ts', `import { gone } from '#gone/x.ts';`, /is no file/],
    ['a specifier without its ending', 'shared/x.ts', `import { clock } from './clock';`, /is no file/],
    ['a type import', 'shared/x.ts', `import type { Bus } from '#bus/bus.ts';`, /the floor has no stairs/],
    ['a type in place', 'shared/x.ts', `export type Bus = import('#bus/bus.ts').Bus;`, /the floor has no stairs/],
    ['a dynamic import', 'shared/x.ts', `export const bus = await import('#bus/bus.ts');`, /the floor has no stairs/],
    ['a computed import', 'shared/x.ts', 'export const load = (name: string) => import(`./${name}.ts`);', /computed/],
    ['an import for its effect', 'shared/x.ts', `import '#bus/bus.ts';`, /the floor has no stairs/],
    ['a require', 'shared/x.ts', `const bus = require('#bus/bus.ts');`, /the floor has no stairs/],
    ['an import over several lines', 'shared/x.ts', `import {\n  bus,\n} from '#bus/bus.ts';`, /the floor has no stairs/],
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
    const deployment = { ...architecture, rules: architecture.rules.filter(({ files }) => files !== 'bus/') };
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-architecture-'));
    folders.push(folder);
    for (const room of architecture.rooms) mkdirSync(join(folder, room));
    writeFileSync(join(folder, 'package.json'), readFileSync(join(root, 'package.json')));
    writeFileSync(join(folder, 'bus', 'a.ts'), `import { b } from './b.ts';`);
    writeFileSync(join(folder, 'bus', 'b.ts'), 'export const b = 1;');

    expect(checkArchitecture(folder, deployment).violations).toEqual(['bus/a.ts:1 lies in no room that the rules know']);
  });
});
