import { describe, expect, it, onTestFinished } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import { RunningItem } from '#services/work/running-items.ts';
import { LivingValue } from '#shared/config/living.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { catalogueOf } from './call/candidates.ts';
import { setupOf } from './call-setup.ts';
import { configuredProviders } from './providers/registry.ts';
import type { OpenedSetup } from './router-setup.ts';
import { Setups } from './setups.ts';

const LONG_MS = 3_600_000;

function setupWith(hash: string, ...names: string[]): OpenedSetup {
  const config = routerConfig.parse({
    providers: [{ slug: 'scripted', kind: 'scripted' }],
    models: names.map((name) => ({ id: `acme/${name}`, endpoints: [{ provider: 'scripted', upstream_model: name }] })),
    keys: [{ id: 'k', key: '${KEY}' }],
  });
  return { hash, catalogue: catalogueOf(config, configuredProviders(config)), engines: { moderation: null }, close: async () => {} } as unknown as OpenedSetup;
}

function worker(...names: string[]) {
  const living = new LivingValue(setupWith('first', ...names));
  const setups = new Setups({ setup: living, log: silentLog });
  onTestFinished(() => setups.stop());
  const lines: string[] = [];
  const log = { ...silentLog, warn: (_: object, line: string) => void lines.push(line) };
  return { living, lines, deps: { setups, log, waitsMs: [LONG_MS] } };
}

const callOf = (name: string, admittedUnder?: string) =>
  ({ maxTokens: null, admittedUnder, request: { model: `acme/${name}`, messages: [{ role: 'user', content: 'Hello' }] } }) as unknown as RouterCall;

const hashOf = async (found: ReturnType<typeof setupOf>) => {
  const setup = await found;
  return setup === 'again' ? setup : setup.hash;
};

describe('a call whose configuration is not known', () => {
  it('is served by the current one at once where that can', () => {
    const { deps } = worker('one');
    expect(setupOf(callOf('one', 'second'), new RunningItem(1), deps)).toMatchObject({ hash: 'first' });
  });

  it('waits for the reload that it needs', async () => {
    const { living, deps, lines } = worker('one');
    const waiting = setupOf(callOf('two', 'third'), new RunningItem(1), deps);
    expect(waiting).toBeInstanceOf(Promise);
    living.replace(setupWith('second', 'one'));
    living.replace(setupWith('third', 'one', 'two'));
    expect(await hashOf(waiting)).toBe('third');
    expect(lines).toEqual([]);
  });

  it('is served by a later configuration that can', async () => {
    const { living, deps } = worker('one');
    const waiting = setupOf(callOf('two', 'second'), new RunningItem(1), deps);
    living.replace(setupWith('third', 'one', 'two'));
    expect(await hashOf(waiting)).toBe('third');
  });

  it('waits for the engine of a plugin that it asks for, and not for a suffix that any configuration serves', async () => {
    const { living, deps } = worker('one');
    expect(setupOf(callOf('one:nitro', 'second'), new RunningItem(1), deps)).toMatchObject({ hash: 'first' });
    const { request, ...call } = callOf('one', 'second');
    const moderated = { ...call, request: { ...request, plugins: [{ id: 'moderation' }] } };
    const waiting = setupOf(moderated as typeof moderated & ReturnType<typeof callOf>, new RunningItem(1), deps);
    living.replace({ ...setupWith('third', 'one'), engines: { moderation: {} } } as unknown as OpenedSetup);
    expect(await hashOf(waiting)).toBe('third');
  });

  it('does not wait for an endpoint that takes files, as the router reads PDFs, unless the call has this switched off', async () => {
    const { living, deps } = worker('one');
    const text = setupWith('second', 'one');
    for (const model of text.catalogue.names.models) for (const endpoint of model.endpoints) endpoint.modalities = [];
    living.replace(text);
    const file = { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } };
    const asking = (plugins: object[]) => ({
      ...callOf('one', 'third'),
      request: { model: 'acme/one', messages: [{ role: 'user', content: [file] }], plugins },
    });
    expect(setupOf(asking([]) as unknown as RouterCall, new RunningItem(1), deps)).toMatchObject({ hash: 'second' });
    const running = new RunningItem(1);
    const waiting = setupOf(asking([{ id: 'file-parser', enabled: false }]) as unknown as RouterCall, running, deps);
    expect(waiting).toBeInstanceOf(Promise);
    running.end('cancelled');
    await waiting;
  });

  it('is given back when the reload does not come in time, and in the end left to the current one', async () => {
    const { deps, lines } = worker('one');
    const hurried = { ...deps, waitsMs: [1] };
    expect(await hashOf(setupOf(callOf('two', 'second'), new RunningItem(1), hurried))).toBe('again');
    expect(await hashOf(setupOf(callOf('two', 'second'), new RunningItem(2), hurried))).toBe('first');
    expect(lines).toEqual([expect.stringContaining('given back'), expect.stringContaining('decides')]);
  });

  it('waits no longer once it has ended', async () => {
    const { deps } = worker('one');
    const running = new RunningItem(1);
    const waiting = setupOf(callOf('two', 'second'), running, deps);
    running.end('cancelled');
    expect(await hashOf(waiting)).toBe('first');
  });
});

it('serves a call under a former configuration, of which the current one has nothing', async () => {
  const { living, deps } = worker('one');
  living.replace(setupWith('second', 'two'));
  expect(await hashOf(setupOf(callOf('one', 'first'), new RunningItem(1), deps))).toBe('first');
});

it('serves a call that names no configuration, as those of actors, under the current one, also where that can not', async () => {
  const { deps } = worker('one');
  expect(await hashOf(setupOf(callOf('two'), new RunningItem(1), deps))).toBe('first');
});
