import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { nodeSatisfies } from '../scripts/node-version.mjs';
import { buildStamp, builtFiles, installStamp, onlyForTests, rooms } from '../scripts/stamp.mjs';
import { ourServices, packageFile, root, serviceOf } from './helpers/deployment.ts';
import { readDockerfile } from './helpers/plain-config.ts';

describe('the build', () => {
  const isForTests = (path: string) => /test|conformance|fixture|vitest/.test(path);
  const tsconfig = z.looseObject({ exclude: z.array(z.string()) }).parse(JSON.parse(readFileSync(join(root, 'tsconfig.build.json'), 'utf8')));

  it('compiles nothing that only tests use, whatever imports it', () => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json'), '--listFilesOnly'], { encoding: 'utf8' });
    const compiled = stdout.split('\n').flatMap((path) => (path === '' || path.includes('node_modules') ? [] : [relative(root, path)]));

    expect(compiled.length).toBeGreaterThan(200);
    expect(compiled.filter(isForTests)).toEqual([]);
    expect(tsconfig.exclude).toEqual(onlyForTests);
  });

  it('copies nothing that only tests use, but the SQL of the migrations', () => {
    const built = rooms.flatMap((room) => builtFiles(root, room));

    expect(built.filter(isForTests)).toEqual([]);
    expect(built.filter((path) => path.endsWith('.sql')).length).toBeGreaterThan(0);
  });
});

describe('the image', () => {
  const [build = [], final = [], ...more] = readDockerfile(join(root, 'deploy/Dockerfile'));
  const restsOf = (stage: typeof build, name: string) => stage.filter((instruction) => instruction.name === name).map(({ rest }) => rest);
  const copiedFrom = (stage: typeof build) =>
    restsOf(stage, 'COPY')
      .filter((rest) => !rest.startsWith('--from'))
      .flatMap((rest) => rest.split(' ').slice(0, -1));
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });

  function folderWith(paths: readonly string[]): string {
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-image-'));
    folders.push(folder);
    for (const path of paths) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      symlinkSync(join(root, path), join(folder, path));
    }
    return folder;
  }

  it('is built by the clone’s own script, from all that a build depends on', () => {
    const firstRun = build.findIndex(({ name }) => name === 'RUN');
    const packages = copiedFrom(build.slice(0, firstRun));

    expect(restsOf(build, 'RUN')).toEqual(['node scripts/prepare.mjs', 'node scripts/prepare.mjs --build']);
    expect(packages).toContain('scripts');
    expect(installStamp(folderWith(packages))).toBe(installStamp(root));
    expect(buildStamp(folderWith(copiedFrom(build)))).toBe(buildStamp(root));
  });

  it('holds the build and the packages it runs with, and runs node as a user without privileges', () => {
    expect(more).toEqual([]);
    expect(copiedFrom(final)).toEqual(['package.json', 'package-lock.json']);
    expect(restsOf(final, 'COPY')).toContain('--from=build /app/dist ./dist');
    expect(restsOf(final, 'RUN')).toEqual([expect.stringMatching(/^npm ci --omit=dev --ignore-scripts /)]);
    expect(restsOf(final, 'USER')).toEqual(['node']);
    expect(JSON.parse(restsOf(final, 'ENTRYPOINT')[0] ?? '')).toEqual(['node']);
    expect([...restsOf(final, 'ENV'), ...restsOf(build, 'ENV'), ...restsOf(build, 'ARG'), ...restsOf(final, 'ARG')]).toEqual(['NODE_ENV=production']);
  });

  it('runs on one Node, of a version that the package allows', () => {
    const [base, again] = [build, final].map((stage) => restsOf(stage, 'FROM')[0]?.split(' ')[0]);
    const [, major] = /^node:(\d+)-bookworm-slim$/.exec(base ?? '') ?? [];

    expect(again).toBe(base);
    expect(nodeSatisfies(`${major}.0.0`, packageFile.engines.node)).toBe(true);
  });

  it('has a build context of what it copies and nothing else: no .env, no tests, no history', () => {
    const rules = readFileSync(join(root, '.dockerignore'), 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    const allowed = rules.filter((rule) => rule.startsWith('!')).map((rule) => rule.slice(1));

    expect(rules[0]).toBe('*');
    expect(allowed.sort()).toEqual([...new Set([...copiedFrom(build), ...copiedFrom(final)])].sort());
    expect(rules).toEqual(expect.arrayContaining([...onlyForTests, '**/node_modules']));
    for (const name of ourServices) expect(serviceOf(name).build).toEqual({ context: '.', dockerfile: 'deploy/Dockerfile' });
  });
});
