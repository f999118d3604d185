import { mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { silentLog } from '../telemetry/log.ts';
import { openMetrics } from '../telemetry/open-metrics.ts';
import { type OpenedRouterConfig, openRouterConfig } from './open-router-config.ts';

/** Waits for a condition, however slow the machine. */
const EVENTUALLY = { timeout: 60_000, interval: 10 };
const POLL_MS = 10;

let folder: string;
let path: string;
let opened: OpenedRouterConfig | null = null;
let metrics: ReturnType<typeof openMetrics>;
let lines: { level: string; fields: Record<string, unknown>; message: string }[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'router-config-'));
  path = join(folder, 'router.yaml');
  metrics = openMetrics();
  lines = [];
});
afterEach(async () => {
  await opened?.stop();
  opened = null;
  rmSync(folder, { recursive: true });
});

function fileWith(model: string): string {
  return `
providers: [{ slug: local, kind: scripted }]
models: [{ id: acme/${model}, endpoints: [{ provider: local, upstream_model: ${model} }] }]
keys: [{ id: k, key: '\${KEY}' }]
`;
}

const log = {
  ...silentLog,
  info: (fields: object, message: string) => void lines.push({ level: 'info', fields: { ...fields }, message }),
  error: (fields: object, message: string) => void lines.push({ level: 'error', fields: { ...fields }, message }),
};

async function open(pollMs = POLL_MS): Promise<OpenedRouterConfig> {
  opened = await openRouterConfig({ path, environment: { KEY: 'secret' }, use: { secrets: 'keys' } }, { clock: systemClock, log, metrics, pollMs });
  return opened;
}

const modelOf = () => opened?.living.current().config.models[0]?.id;
const eventually = (model: string) => expect.poll(modelOf, EVENTUALLY).toBe(`acme/${model}`);

async function sampleOf(pattern: RegExp): Promise<string | undefined> {
  return pattern.exec(await metrics.text())?.[1];
}
const countOf = (outcome: string) => sampleOf(new RegExp(`switchyard_config_reloads_total\\{outcome="${outcome}"\\} (\\d+)`));

describe('a changed file is read again', () => {
  it('when it is written, and when another is renamed over it, as editors do', async () => {
    writeFileSync(path, fileWith('one'));
    await open();
    writeFileSync(path, fileWith('two'));
    await eventually('two');
    writeFileSync(`${path}.new`, fileWith('three'));
    renameSync(`${path}.new`, path);
    await eventually('three');
  });

  it('when a folder on the way is replaced by a symlink to another, as Kubernetes does with mounted files', async () => {
    for (const version of ['one', 'two']) {
      const data = mkdtempSync(join(folder, `..${version}-`));
      writeFileSync(join(data, 'router.yaml'), fileWith(version));
      symlinkSync(data, join(folder, '..next'));
      renameSync(join(folder, '..next'), join(folder, '..data'));
      if (version === 'one') {
        symlinkSync(join('..data', 'router.yaml'), path);
        await open();
        expect(modelOf()).toBe('acme/one');
      }
    }
    await eventually('two');
  });

  it('when it was away for some time', async () => {
    writeFileSync(path, fileWith('one'));
    await open();
    unlinkSync(path);
    await expect.poll(() => lines.at(-1)?.fields.problems, EVENTUALLY).toEqual([`${path} has 1 error:`, '  the file does not exist']);
    expect(modelOf()).toBe('acme/one');
    writeFileSync(path, fileWith('two'));
    await eventually('two');
  });

  it('when it changed while it was read for the first time', async () => {
    writeFileSync(path, fileWith('one'));
    const opening = open();
    writeFileSync(path, fileWith('two'));
    await opening;
    await eventually('two');
  });

  it('at once where that is asked for', async () => {
    writeFileSync(path, fileWith('one'));
    const { reload } = await open(3_600_000);
    writeFileSync(path, fileWith('two'));
    await reload();
    expect(modelOf()).toBe('acme/two');
  });
});

it('leaves a file alone that is being written', async () => {
  writeFileSync(path, fileWith('one'));
  await open(1);
  const whole = fileWith('two');
  const isRefused = () => lines.some(({ level }) => level === 'error');
  for (let length = 1; length < whole.length; length += 1) {
    writeFileSync(path, whole.slice(0, length));
    await new Promise((resolve) => setImmediate(resolve));
  }
  writeFileSync(path, whole);
  await eventually('two');
  expect(isRefused()).toBe(false);
});

it('DESIGN 10: refuses a file with errors whole, logs each error, and keeps what is in force', async () => {
  writeFileSync(path, fileWith('one'));
  const { living, reload } = await open(3_600_000);
  const first = living.current();
  const since = await sampleOf(/switchyard_config_in_force_since_seconds\{hash="[0-9a-f]{12}"\} ([\d.]+)/);
  writeFileSync(path, fileWith('two').replace('slug: local', 'slug: other').replace('id: k,', 'id: "",'));
  await reload();

  expect(living.current()).toBe(first);
  const [line] = lines;
  expect(line).toMatchObject({ level: 'error', fields: { hash_in_force: first.hash } });
  const problems = [line?.fields.problems].flat().join('\n');
  expect(problems).toMatch(/keys\[0\]\.id: /);
  expect(problems).toMatch(/models\[0\]\.endpoints\[0\]\.provider: there is no provider/);
  expect([await countOf('refused'), await countOf('applied')]).toEqual(['1', '0']);
  expect(await sampleOf(/switchyard_config_in_force_since_seconds\{hash="[0-9a-f]{12}"\} ([\d.]+)/)).toBe(since);
});

it('refuses a file that what derives from it refuses', async () => {
  writeFileSync(path, fileWith('one'));
  const { living, reload } = await open(3_600_000);
  living.derive(({ config }) => {
    if (config.models[0]?.id === 'acme/two') throw new Error('not this one');
  });
  writeFileSync(path, fileWith('two'));
  await reload();
  expect(modelOf()).toBe('acme/one');
  expect(lines[0]).toMatchObject({ level: 'error', fields: { err: expect.objectContaining({ message: 'not this one' }) } });
});

it('names the configuration in force by a hash of its content, whatever its layout', async () => {
  writeFileSync(path, fileWith('one'));
  const { living, reload } = await open(3_600_000);
  const { hash } = living.current();
  writeFileSync(path, `# A comment\n${fileWith('one').replace('slug: local, kind: scripted', 'kind: scripted,   slug: local')}`);
  await reload();
  expect([living.current().hash, await countOf('unchanged')]).toEqual([hash, '1']);
  expect(await metrics.text()).toContain(`switchyard_config_in_force_since_seconds{hash="${hash}"} `);
  writeFileSync(path, fileWith('two'));
  await reload();
  expect(living.current().hash).not.toBe(hash);
  expect(await metrics.text()).not.toContain(hash);
  expect(lines.at(-1)).toMatchObject({ fields: { hash: living.current().hash, hash_before: hash, providers: 1, models: 1, keys: 1 } });
});
