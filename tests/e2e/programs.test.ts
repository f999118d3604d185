import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
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
