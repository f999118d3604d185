import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { examine, ok } from './finding.ts';
import { machineChecks, satisfies } from './machine-checks.ts';
import { certificateFinding, networkChecks, providerFinding, serverFindings } from './network-checks.ts';
import { clockFinding, schemaFinding, storeChecks, streamFindings } from './store-checks.ts';

describe('doctor', () => {
  it('turns a check that throws into a finding with the fix of the check, without credentials', async () => {
    const broken = { name: 'database', fix: 'start it', run: () => Promise.reject(new Error('no answer from postgres://user:word@host/db')) };

    const shown: string[] = [];
    const found = await examine([broken, { name: 'node', fix: '', run: async () => [ok('fine')] }], (text) => shown.push(text));
    expect(shown).toEqual([expect.stringMatching(/^looking at (node|database)$/)]);
    expect(found).toEqual([
      { check: 'database', status: 'failed', detail: 'no answer from postgres://[redacted]@host/db', fix: 'start it' },
      { check: 'node', status: 'ok', detail: 'fine', fix: null },
    ]);
  });

  it.each([
    ['20.19.0', true],
    ['20.18.9', false],
    ['21.7.0', false],
    ['22.12.1', true],
    ['23.0.0', false],
    ['24.0.0', true],
    ['30.1.2', true],
  ])('knows whether Node %s will do: %s', (version, will) => {
    expect(satisfies(version, '^20.19.0 || ^22.12.0 || >=24.0.0')).toBe(will);
  });

  it('looks at ports and disk where `start` may run, and not beside a deployment with a database of its own', () => {
    const namesFor = (environment: Record<string, string>) => machineChecks(environment).map(({ name }) => name);

    expect(namesFor({})).toEqual(['node', 'ports', 'disk']);
    expect(namesFor({ DATABASE_URL: 'postgres://postgres/switchyard' })).toEqual(['node']);
    expect(namesFor({ DATABASE_URL: 'postgres://postgres/switchyard', DATA_DIR: 'data' })).toEqual(['node', 'ports', 'disk']);
  });

  it('asks no vendor for OPENAI_API_KEY=none, as in the .env of the compose file', async () => {
    const [providers] = networkChecks({ OPENAI_API_KEY: 'none', OPENAI_BASE_URL: 'http://127.0.0.1:9' }, { nowMs: () => 0 }).filter(
      ({ name }) => name === 'providers',
    );

    expect(await providers?.run()).toMatchObject([{ status: 'ok' }]);
  });

  it('says of a cluster what it is: PostgreSQL of its own, and processes that are not started again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'switchyard-doctor-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const servers = { router: { urls: ['http://127.0.0.1:1', 'http://127.0.0.1:2'] }, agent: { urls: ['http://127.0.0.1:3'] } };
    const write = (kind: string) => writeFile(join(folder, 'running.json'), JSON.stringify({ kind, pid: process.pid, ...servers }));
    const unused = () => expect.fail('there is no other store');
    const clock = { nowMs: () => 0 };
    const checks = [
      ...storeChecks({ environment: { DATA_DIR: folder }, openDatabase: unused, inspectStreams: unused, pingCache: unused, clock }),
      ...machineChecks({ DATA_DIR: folder }),
    ];
    const detailsOf = async () => (await examine(checks)).filter(({ check }) => ['database', 'ports'].includes(check)).map(({ detail }) => detail);

    await write('cluster');
    expect(await detailsOf()).toEqual([
      expect.stringMatching(/^process \d+ runs a cluster with PostgreSQL: set DATABASE_URL /),
      expect.stringMatching(/^process \d+ runs a cluster, with http:\/\/127\.0\.0\.1:1 and http:\/\/127\.0\.0\.1:2 and http:\/\/127\.0\.0\.1:3$/),
    ]);
    await write('start');
    expect((await detailsOf())[0]).toContain('uses the embedded database');
  });

  it('tells a killed process of a cluster, beside which another one serves, from a server that is away', () => {
    const [ready, killed, waiting] = [200, null, 503].map((status, number) => ({ url: `http://127.0.0.1:${number}`, status }));
    if (ready === undefined || killed === undefined || waiting === undefined) throw new Error('there are three');

    expect(serverFindings([ready, killed], true)).toMatchObject([{ status: 'ok' }, { status: 'warning', fix: expect.stringContaining('restart the cluster') }]);
    expect(serverFindings([killed], true)).toMatchObject([{ status: 'failed', fix: expect.stringContaining('restart the cluster') }]);
    expect(serverFindings([killed], false)).toMatchObject([{ status: 'failed', fix: 'look whether its process runs, and into its log' }]);
    expect(serverFindings([waiting], true)).toMatchObject([{ status: 'failed', fix: expect.stringContaining('what it waits for') }]);
  });

  it.each([
    [999, 'ok'],
    [-5_000, 'warning'],
    [31_000, 'failed'],
  ])('a clock that differs by %i ms is %s', (differenceMs, status) => {
    expect(clockFinding(differenceMs)).toMatchObject({ status });
  });

  it('names streams that are missing, different, or copy messages', () => {
    const findings = streamFindings([
      { name: 'CMD', state: 'declared', fields: [] },
      { name: 'WORK', state: 'missing', fields: [] },
      { name: 'TOK', state: 'different', fields: ['max_age'] },
      { name: 'USAGE', state: 'copying', fields: ['mirror'] },
    ]);

    expect(findings.map(({ status }) => status)).toEqual(['ok', 'warning', 'warning', 'failed']);
    expect(findings[2]).toMatchObject({ detail: expect.stringContaining('max_age'), fix: expect.stringContaining('switchyard streams') });
  });

  it.each([
    [200, 'ok'],
    [401, 'failed'],
    [403, 'failed'],
    [429, 'warning'],
    [503, 'warning'],
    [null, 'failed'],
  ])('a provider that answers %s is %s', (answer, status) => {
    expect(providerFinding({ name: 'openai', key: 'OPENAI_API_KEY' }, answer)).toMatchObject({ status });
  });

  it.each([
    [{ reason: null, days: 60 }, 'ok'],
    [{ reason: null, days: 13 }, 'warning'],
    [{ reason: 'CERT_HAS_EXPIRED', days: -2 }, 'failed'],
    [{ reason: 'self-signed', days: 60 }, 'failed'],
  ])('a certificate with %o is %s', (found, status) => {
    expect(certificateFinding('agent.example', found)).toMatchObject({ status });
  });

  it.each([
    [9, 'ok', null],
    [10, 'failed', 'run that release, or a newer one'],
    [7, 'warning', 'start a process of this release: it applies the others'],
  ])('recognises a database of another release by its %i migrations of 9: %s', (applied, status, fix) => {
    expect(schemaFinding({ applied, known: 9 })).toMatchObject({ status, fix });
  });
});
