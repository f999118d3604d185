import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { post } from '../../services/router-gateway/test-support/http-client.ts';
import type { UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';
import { eventually } from '../helpers/eventually.ts';
import { DIALECTS, type DialectName, openUpstreamOf, UPSTREAM_MODELS } from '../helpers/http-dialects.ts';
import { openRouterInProcess, type RouterInProcess } from '../helpers/router-in-process.ts';
import type { RecordingUpstream } from '../upstreams/loopback-upstream.ts';

const KEY = 'sk-caller-0123456789';
const MANAGER = 'sk-manager-0123456789';
const forms = [
  { form: 'a stream', stream: true },
  { form: 'a whole answer', stream: false },
];

interface Phase {
  phase: string;
  first: UpstreamScenario;
  second?: UpstreamScenario;
  /** Whether content was shown, which is billed. */
  isBilled?: true;
}

const phases: Phase[] = [
  { phase: 'waits for the headers', first: { fault: 'silent' } },
  { phase: 'waits for the first token', first: { fault: 'stall', after: 0 } },
  { phase: 'is in the middle of its answer', first: { text: ['one ', 'two '], fault: 'stall', after: 1 }, isBilled: true },
  { phase: 'has fallen back to the second provider', first: { refuse: { status: 500 } }, second: { fault: 'silent' } },
];

const upstreams = new Map<DialectName, { first: RecordingUpstream; second: RecordingUpstream }>();
const of = (dialect: DialectName) => {
  const pair = upstreams.get(dialect);
  if (pair === undefined) throw new Error('it is not open');
  return pair;
};
/** Reservations of the gateway wait for it. */
let gate: Promise<void> = Promise.resolve();
let waiting = 0;
/** Responses that their client did not wait for. */
let left = 0;
let router: RouterInProcess;

beforeAll(async () => {
  for (const dialect of DIALECTS) upstreams.set(dialect, { first: await openUpstreamOf(dialect), second: await openUpstreamOf(dialect) });
  const prices = { prompt: '1', completion: '2' };
  const config = {
    providers: DIALECTS.flatMap((kind) => [
      { slug: `${kind}-a`, kind, base_url: of(kind).first.baseUrl, api_key: '${VENDOR_KEY}' },
      { slug: `${kind}-b`, kind, base_url: of(kind).second.baseUrl, api_key: '${VENDOR_KEY}' },
    ]),
    models: DIALECTS.map((kind) => ({
      id: `${kind}/model`,
      endpoints: ['a', 'b'].map((one) => ({ provider: `${kind}-${one}`, upstream_model: UPSTREAM_MODELS[kind], prices })),
    })),
    keys: [
      { id: 'caller', key: '${CALLER_KEY}', limit: '1000' },
      { id: 'manager', key: '${MANAGER_KEY}', management: true },
    ],
    // Longer than any test, so that no limit ends a call.
    timeouts: { first_token_ms: 600_000, idle_ms: 600_000, total_ms: 900_000 },
  };
  const beforeReservation = async () => {
    waiting += 1;
    await gate;
  };
  router = await openRouterInProcess({ config, variables: { VENDOR_KEY: 'sk-vendor', CALLER_KEY: KEY, MANAGER_KEY: MANAGER }, beforeReservation });
  router.gateway.app.server.on('request', (_, response) => {
    response.on('close', () => {
      if (!response.writableFinished) left += 1;
    });
  });
});

afterAll(async () => {
  await router.close();
  await Promise.all([...upstreams.values()].flatMap(({ first, second }) => [first.close(), second.close()]));
});

beforeEach(() => {
  waiting = 0;
  left = 0;
  return async () => {
    await eventually(async () => (await router.database.query('select 1 from reservations')).rows.length === 0);
  };
});

const ask = (dialect: DialectName, stream: boolean) => {
  // The default order is a draw.
  const provider = { order: [`${dialect}-a`, `${dialect}-b`] };
  const body = { model: `${dialect}/model`, provider, stream, messages: [{ role: 'user', content: 'hi' }] };
  const posted = post(`${router.url}/api/v1/chat/completions`, body, { authorization: `Bearer ${KEY}` });
  // The connection is the test's to close.
  posted.answer.catch(() => {});
  return posted;
};
const rowsNow = async () => (await router.database.query<{ id: string }>('select generation_id as id from usage_ledger')).rows.map(({ id }) => id);
const record = z.object({ data: z.looseObject({ cancelled: z.boolean(), total_cost: z.number(), tokens_completion: z.number() }) });

describe.each(DIALECTS)('a client of a provider of the kind %s', (dialect) => {
  describe.each(forms)('that leaves while $form', ({ form, stream }) => {
    it.each(phases)('$phase closes the provider’s connection, settles its reservation and has one record', async ({ phase, first, second = {}, isBilled }) => {
      const pair = of(dialect);
      pair.first.answer(first);
      pair.second.answer(second);
      const at = phase.includes('second') ? pair.second : pair.first;
      const { requests, aborts } = { requests: at.requests.length, aborts: at.aborts };
      const before = await rowsNow();
      const posted = ask(dialect, stream);
      await eventually(() => at.requests.length > requests);
      if (isBilled && stream) await eventually(async () => (await posted.answer).text.includes('one '));
      else if (isBilled) await eventually(async () => (await router.database.query('select 1 from reservations')).rows.length === 1);

      const leftAtMs = performance.now();
      posted.leave();
      await eventually(() => at.aborts > aborts);
      console.info(`${dialect}, ${form} ${phase}: closed after ${Math.round(performance.now() - leftAtMs)} ms`);

      const [id] = await eventually(async () => {
        const made = (await rowsNow()).filter((one) => !before.includes(one));
        return made.length > 0 ? made : null;
      });
      const response = await fetch(`${router.url}/api/v1/generation?id=${id}`, { headers: { authorization: `Bearer ${MANAGER}` } });
      const { data } = record.parse(await response.json());
      expect(data.cancelled).toBe(true);
      if (isBilled && stream) expect([data.tokens_completion > 0, data.total_cost > 0]).toEqual([true, true]);
      expect(at.aborts).toBe(aborts + 1);
      expect((await rowsNow()).length).toBe(before.length + 1);
    });
  });
});

it.each(forms)('a client that leaves while its credit is reserved, for $form, sends nothing to a provider, and has no reservation', async ({ stream }) => {
  const requests = of('anthropic').first.requests.length;
  const before = await rowsNow();
  let open = () => {};
  gate = new Promise((resolve) => {
    open = resolve;
  });
  const posted = ask('anthropic', stream);
  await eventually(() => waiting > 0);
  posted.leave();
  await eventually(() => left > 0);
  open();
  await eventually(async () => (await router.database.query('select 1 from reservations')).rows.length === 0);
  // A later call has an answer: what came before it has been handled.
  of('anthropic').first.answer({});
  const later = await (await ask('anthropic', false).answer).ended;
  expect([later, of('anthropic').first.requests.length, (await rowsNow()).length - before.length <= 1]).toEqual([true, requests + 1, true]);
});
