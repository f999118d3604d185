import { describe, expect, it, vi } from 'vitest';
import { ItemAbortController } from '#services/work/item-signal.ts';
import { systemClock } from '#shared/clock.ts';
import type { ModelConfig } from '#shared/config/router-config.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import type { CallSignal } from '../call-signal.ts';
import type { PartHandler, ProviderAdapter } from '../providers/provider.ts';
import type { Attempted, RunDeps } from './attempt.ts';
import type { Candidate } from './candidates.ts';
import { Health } from './health/health.ts';
import { hedgeOf } from './hedge.ts';
import { type CallOutcome, runCall } from './run-call.ts';
import { VectorBudget } from './vector-budget.ts';

const WAIT = { timeout: 60_000 };
const say = (text: string): ProviderPart => ({ type: 'text-delta', text });
const finish: ProviderPart = { type: 'finish', reason: 'stop', nativeReason: 'stop' };
const unavailable = () => new SwitchyardError('router.provider_unavailable', 'it is down');

const hedged = { id: 'm/a', hedge: true } as ModelConfig;
function candidateAt(provider: string, model = hedged): Candidate {
  const endpoint = { provider, upstream_model: model.id };
  return { id: `${model.id}@${provider}`, model, endpoint, provider: { slug: provider, name: provider }, request: { messages: [] }, vectors: null };
}

/** One request to a provider, answered by the test. */
interface Asked {
  provider: string;
  signal: CallSignal;
  parts: PartHandler;
  end(error?: unknown): void;
}

class Race {
  readonly asked: Asked[] = [];
  readonly attempted: Attempted[] = [];
  readonly abort = new ItemAbortController();
  readonly metrics = openMetrics();
  readonly health: RunDeps['health'];
  shown = '';
  readonly outcome: Promise<CallOutcome>;

  /** @param afterMs of the hedge */
  constructor(candidates: readonly Candidate[], { afterMs = 1 as number | null, open = '' } = {}) {
    const health = new Health({ clock: systemClock, log: silentLog, metrics: noMetrics });
    this.health = {
      begin: (target) => health.begin(target),
      of: (target) => ({ ...health.of(target), isOpen: target.provider.slug === open }),
      firstTokenP95Ms: () => afterMs,
    };
    const adapterOf = (slug: string): ProviderAdapter => ({
      slug,
      upstreamBody: () => ({}),
      stream: (_, signal, parts) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          this.asked.push({ provider: slug, signal, parts, end: (error) => (error === undefined ? resolve() : reject(error)) });
        }),
    });
    const adapters = new Map(candidates.map(({ provider: { slug } }) => [slug, adapterOf(slug)]));
    const show = (parts: readonly ProviderPart[]) => {
      for (const part of parts) if (part.type === 'text-delta') this.shown += part.text;
    };
    const observer = {
      retainsAnswer: true,
      begin: ({ provider }: Candidate) => {
        this.shown += `[${provider.slug}]`;
      },
      chosen: ({ provider }: Candidate) => {
        this.shown += `(${provider.slug})`;
      },
      parts: show,
      attempted: (attempt: Attempted) => void this.attempted.push(attempt),
    };
    const deps = { adapters, timeouts: { connectMs: 1, firstTokenMs: 1, idleMs: 1 }, vectorBudget: new VectorBudget(), log: silentLog };
    this.outcome = runCall({ candidates, partTransforms: [] }, observer, this.abort, { ...deps, health: this.health, metrics: this.metrics });
  }

  /** The request with this number, once it was made. */
  async request(number: number): Promise<Asked> {
    return vi.waitFor(() => {
      const asked = this.asked[number];
      if (asked === undefined) throw new Error(`there are ${this.asked.length} requests`);
      return asked;
    }, WAIT);
  }

  get attempts() {
    return this.attempted.map(({ candidate, hedge, outrun, error }) => [
      candidate.provider.slug,
      hedge,
      outrun === true ? 'outrun' : error === null ? 'ok' : 'failed',
    ]);
  }

  async counted(name: string): Promise<string[]> {
    const lines = (await this.metrics.text()).split('\n').filter((line) => line.startsWith(`${name}{`) && !line.endsWith(' 0'));
    return lines.map((line) => line.slice(name.length));
  }
}

const [east, west, north] = [candidateAt('east'), candidateAt('west'), candidateAt('north')];

describe('a hedged call', () => {
  it('DESIGN 8: a hedged call is answered by the second endpoint when the first is late, and aborts the first', async () => {
    const race = new Race([east, west, north]);
    const [first, second] = [await race.request(0), await race.request(1)];
    expect([first.provider, second.provider]).toEqual(['east', 'west']);
    second.parts([say('hello')]);
    expect(first.signal.aborted).toBe(true);
    expect(first.parts([say('too late')])).toBe(false);
    second.parts([finish]);
    second.end();
    expect(await race.outcome).toMatchObject({ type: 'completed', candidate: west, answer: { text: 'hello' } });
    expect(race.shown).toBe('[east][west](west)hello');
    expect(race.attempts).toEqual([
      ['east', 'first', 'outrun'],
      ['west', 'second', 'ok'],
    ]);
    expect(await race.counted('switchyard_hedges_total')).toEqual(['{model="m/a",outcome="second"} 1']);
    expect(await race.counted('switchyard_upstream_attempts_total')).toEqual([
      '{model="m/a",provider="east",outcome="outrun"} 1',
      '{model="m/a",provider="west",outcome="ok"} 1',
    ]);
  });

  it('is answered by the first when it is faster after all, under its own name', async () => {
    const race = new Race([east, west]);
    const [first, second] = [await race.request(0), await race.request(1)];
    first.parts([say('hel')]);
    expect(second.signal.aborted).toBe(true);
    first.parts([say('lo'), finish]);
    first.end();
    expect(await race.outcome).toMatchObject({ type: 'completed', candidate: east, answer: { text: 'hello' } });
    expect(race.shown).toBe('[east][west](east)hello');
    expect(race.attempts).toEqual([
      ['west', 'second', 'outrun'],
      ['east', 'first', 'ok'],
    ]);
  });

  it('asks no second endpoint when the first is in time', async () => {
    const race = new Race([east, west], { afterMs: 3_600_000 });
    const first = await race.request(0);
    first.parts([say('hello'), finish]);
    first.end();
    expect(await race.outcome).toMatchObject({ type: 'completed', candidate: east });
    expect(race.attempts).toEqual([['east', undefined, 'ok']]);
    expect(await race.counted('switchyard_hedges_total')).toEqual([]);
  });

  it('goes on with the second when the first fails, and with the first when the second fails', async () => {
    for (const failing of [0, 1]) {
      const race = new Race([east, west]);
      await race.request(1);
      const answering = await race.request(1 - failing);
      (await race.request(failing)).end(unavailable());
      await vi.waitFor(async () => expect(await race.counted('switchyard_upstream_attempts_total')).toHaveLength(1), WAIT);
      answering.parts([say('hello'), finish]);
      answering.end();
      expect(await race.outcome).toMatchObject({ type: 'completed', candidate: [east, west][1 - failing] });
      expect(race.asked).toHaveLength(2);
      expect(race.attempts.map(([, , how]) => how)).toEqual(['failed', 'ok']);
    }
  });

  it('falls back behind both when both fail, hedges no more, and lists both errors', async () => {
    const race = new Race([east, west, north]);
    (await race.request(0)).end(unavailable());
    // Failed before the second began: the next attempt may be hedged.
    (await race.request(1)).end(unavailable());
    (await race.request(2)).end(unavailable());
    const outcome = await race.outcome;
    expect(outcome).toMatchObject({ type: 'failed', candidate: { provider: { slug: 'north' } } });
    expect(outcome.type === 'failed' && outcome.previousErrors.map(({ provider }) => provider)).toEqual(['east', 'west']);

    const both = new Race([east, west, north, candidateAt('south')]);
    await both.request(1);
    for (const asked of both.asked) asked.end(unavailable());
    const third = await both.request(2);
    third.parts([say('hello'), finish]);
    third.end();
    expect(await both.outcome).toMatchObject({ type: 'completed', candidate: north });
    expect(both.attempts).toEqual([
      ['east', 'first', 'failed'],
      ['west', 'second', 'failed'],
      ['north', undefined, 'ok'],
    ]);
    expect(await both.counted('switchyard_hedges_total')).toEqual(['{model="m/a",outcome="neither"} 1']);
  });

  it('aborts both when its caller leaves', async () => {
    const race = new Race([east, west, north]);
    const [first, second] = [await race.request(0), await race.request(1)];
    race.abort.abort(new SwitchyardError('router.cancelled', 'the caller left'));
    expect([first.signal.aborted, second.signal.aborted]).toEqual([true, true]);
    expect(await race.outcome).toMatchObject({ type: 'aborted', partial: null });
    expect(race.attempted).toHaveLength(2);
    expect(race.asked).toHaveLength(2);
  });

  it('ends with the error of the endpoint that has shown content', async () => {
    const race = new Race([east, west, north]);
    await race.request(0);
    const second = await race.request(1);
    second.parts([say('half')]);
    second.end(unavailable());
    expect(await race.outcome).toMatchObject({ type: 'failed', candidate: west, partial: { text: 'half' } });
    expect(race.asked).toHaveLength(2);
  });

  it('takes an answer without content, too', async () => {
    const race = new Race([east, west]);
    await race.request(1);
    const first = await race.request(0);
    first.parts([finish]);
    first.end();
    expect(await race.outcome).toMatchObject({ type: 'completed', candidate: east });
    expect(race.attempts.at(-1)).toEqual(['east', 'first', 'ok']);
  });
});

describe('the hedge of a call', () => {
  const health = (p95Ms: number | null, open: readonly string[] = []) => new Race([], { afterMs: p95Ms, open: open[0] ?? '' }).health;
  const other = { ...hedged, id: 'n/b' };

  it.each<[string, Candidate, readonly Candidate[], number | null, string[], string | null]>([
    ['is the next endpoint of the model', east, [west, north], 500, [], 'west'],
    ['is none that is open', east, [west, north], 500, ['west'], 'north'],
    ['is no endpoint of another model', east, [candidateAt('west', other)], 500, [], null],
    ['is none without measured times', east, [west], null, [], null],
    ['is none without another endpoint', east, [], 500, [], null],
    ['is none without the model’s consent', candidateAt('east', { ...hedged, hedge: false }), [west], 500, [], null],
    ['is none for vectors', { ...east, vectors: {} as Candidate['vectors'] }, [west], 500, [], null],
  ])('%s', (_, first, rest, p95Ms, open, expected) => {
    expect(hedgeOf(first, rest, health(p95Ms, open))?.candidate.provider.slug ?? null).toBe(expected);
  });

  it('begins at the 95th percentile, and not at once', () => {
    expect(hedgeOf(east, [west], health(750))?.afterMs).toBe(750);
    expect(hedgeOf(east, [west], health(1))?.afterMs).toBe(20);
  });
});
