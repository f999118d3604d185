import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { freeFolder } from '../helpers/free-folder.ts';
import { root, runProgram } from '../helpers/run-program.ts';
import { deployables } from '../helpers/service-settings.ts';

const programs = join(root, 'dist/programs');
const services = [...deployables(root), 'standalone', 'operator', 'router'].filter((name, index, all) => all.indexOf(name) === index);

/** The files that Node reads before the first line of a program runs, and the packages that it looks for in node_modules. */
function loadedBy(start: string): { files: string[]; packages: string[] } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const read = (path: string) => {
    if (files.has(path)) return;
    files.add(path);
    for (const [, specifier = ''] of readFileSync(path, 'utf8').matchAll(/^(?:import|export)\b[^;"']*["']([^"']+)["'];?$/gm)) {
      if (specifier.startsWith('.')) read(join(dirname(path), specifier));
      else if (!specifier.startsWith('node:')) packages.add(specifier);
    }
  };
  read(start);
  return { files: [...files], packages: [...packages] };
}

describe('a program', () => {
  it.each(services)('%s is loaded from few files, with its packages', (name) => {
    const { files, packages } = loadedBy(join(root, 'dist/services', name, 'main.js'));

    // As many as tsc makes would be some 400, and 700 more of packages.
    expect(files.length).toBeLessThan(100);
    expect(files.length).toBeGreaterThan(2);
    expect(files.slice(1).filter((path) => dirname(path) !== programs)).toEqual([]);
    expect(packages.filter((specifier) => !specifier.startsWith('@electric-sql/'))).toEqual([]);
  });

  it('that is a thread is loaded from few files, too', () => {
    expect(loadedBy(join(root, 'dist/shared/config/read-document-thread.js')).files.length).toBeLessThan(20);
  });

  it('finds the files beside the modules that read them', () => {
    const parts = readdirSync(programs).filter((name) => name.endsWith('.js'));
    const places = parts.flatMap((name) => [...readFileSync(join(programs, name), 'utf8').matchAll(/new URL\("(\.\.[^"]+\.js)", import\.meta\.url\)/g)]);
    const built = places.map(([, place = '']) => join(programs, place));

    expect(built.map((path) => relative(join(root, 'dist'), path))).toEqual(
      expect.arrayContaining(['shared/storage/migrate.js', 'shared/config/read-in-thread.js']),
    );
    expect(built.filter((path) => !existsSync(path))).toEqual([]);
  });

  it.each([
    ['of an error that is printed', 'console.log(new Error("here").stack)'],
    ['of an unhandled error during its start', 'throw new TypeError("here")'],
  ])('names the sources in the stack %s', async (_, statement) => {
    // What it prints when it can't start becomes that statement.
    const preload = `data:text/javascript,console.error = () => { ${statement}; };`;
    const program = runProgram([process.execPath, '--import', preload, 'dist/services/standalone/main.js'], { env: { ROUTER_PORT: 'x' } });

    expect(await program.exited).toEqual({ code: 1, signal: null });
    const [, line = '0'] = /services\/standalone\/main\.ts:(\d+)/.exec(program.output()) ?? [];
    expect(readFileSync(join(root, 'services/standalone/main.ts'), 'utf8').split('\n')[Number(line) - 1]).toContain('console.error(');
    expect(program.output()).not.toContain('dist/programs');
  });

  it('has the licence of each package in it', () => {
    const licences = readFileSync(join(programs, 'licences.txt'), 'utf8');

    for (const name of ['fastify', 'undici', 'zod', '@nats-io/jetstream', 'xstate', 'pg']) expect(licences).toMatch(new RegExp(`^${name} \\d.*: \\S+$`, 'm'));
    expect(licences).toContain('Copyright (c) Matteo Collina and Undici contributors');
  });
});

/** The start of a program that calls `runProcess` of the build. */
const runningProcess = `
  import { runProcess } from ${JSON.stringify(pathToFileURL(join(root, 'dist/shared/lifecycle/run-process.js')).href)};

  const readyFile = process.env.READY_FILE;
  const config = { logLevel: 'error', logFormat: 'json', drainTimeoutMs: 0, management: { host: '127.0.0.1', port: 0 }, readyFile };
`;

/** A service that fills its young generation while it starts, and prints the size of that, in MiB, at its start and once it is ready. */
const growingService = `
  import { existsSync } from 'node:fs';
  import { getHeapSpaceStatistics } from 'node:v8';
  ${runningProcess}
  const printYoung = () => console.log('young', getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').physical_space_size / 2 ** 20);
  await runProcess({
    name: 'growing',
    parseConfig: () => config,
    start: async () => {
      const living = new Array(200_000).fill(null);
      for (let n = 0; n < 2_000_000; n += 1) living[n % living.length] = { n, text: 'of ' + n, list: [n] };
      printYoung();
      const waiting = setInterval(() => {
        if (!existsSync(readyFile)) return;
        clearInterval(waiting);
        printYoung();
        process.kill(process.pid, 'SIGTERM');
      }, 5);
      return { url: null, checks: [] };
    },
  });
`;

/** A service that gets SIGTERM when its start has ended, while its garbage is collected. */
const stoppedService = `
  import { Session } from 'node:inspector/promises';
  ${runningProcess}
  const { post } = Session.prototype;
  Session.prototype.post = function (...parameters) {
    process.kill(process.pid, 'SIGTERM');
    return post.apply(this, parameters);
  };
  await runProcess({
    name: 'stopped',
    parseConfig: () => config,
    start: async ({ releasers }) => {
      releasers.add('work', () => console.log('drained'));
      return { url: null, checks: [] };
    },
  });
`;

describe('a process', () => {
  it('has a small young generation once it is ready, although its start has grown it', async () => {
    const program = runProgram([process.execPath, '--input-type=module', '--eval', growingService], {
      env: { READY_FILE: join(await freeFolder('growing'), 'ready') },
    });

    expect(await program.exited).toEqual({ code: 0, signal: null });
    const [grown = 0, ready = Number.NaN] = [...program.output().matchAll(/^young (\S+)$/gm)].map(([, size]) => Number(size));
    expect(grown).toBeGreaterThan(8);
    expect(ready).toBeLessThan(4);
  });

  it('drains when it is stopped before it is ready', async () => {
    const program = runProgram([process.execPath, '--input-type=module', '--eval', stoppedService], {
      env: { READY_FILE: join(await freeFolder('stopped'), 'ready') },
    });

    expect(await program.exited).toEqual({ code: 0, signal: null });
    expect(program.output()).toContain('drained');
  });
});
