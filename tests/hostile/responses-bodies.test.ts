import { afterAll, beforeAll, expect, it } from 'vitest';
import { seededRandom } from '../chaos/seeded-random.ts';
import { eventually } from '../helpers/eventually.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { watchPauses } from '../helpers/pauses.ts';
import { responsesTables, validCasesOf } from '../helpers/request-tables.ts';
import type { RouterInProcess } from '../helpers/router-in-process.ts';
import { tier } from '../helpers/tier.ts';
import { mutateBody } from './mutate-body.ts';
import { pick } from './mutate-json.ts';
import { MODELS, openRouterOfDialects } from './router-of-dialects.ts';
import { expectRefusal, expectResponse, hostileSender } from './send-hostile.ts';

/** SWITCHYARD_FUZZ_SEED repeats a run, SWITCHYARD_FUZZ_CASES is its length. */
const SEED = Number(process.env['SWITCHYARD_FUZZ_SEED'] ?? Math.floor(Date.now() / 1_000) % 1_000_000);
const CASES = Number(process.env['SWITCHYARD_FUZZ_CASES'] ?? (tier === 'deep' ? 10_000 : 400));
const AT_ONCE = 8;
const KEY = 'sk-limited';
const PATHS = ['/api/v1/responses', '/api/alpha/responses'];

const originals = validCasesOf(responsesTables).map(({ request }) => request);
const watch = watchPauses();
let router: RouterInProcess;

beforeAll(async () => {
  router = await openRouterOfDialects({ keys: [{ id: 'limited', key: '${KEY_LIMITED}', limit: '1000000' }], variables: { KEY_LIMITED: KEY } });
});

afterAll(async () => {
  watch.stop();
  await router.close();
});

/** One request, which the seed and its number decide. */
function requestAt(index: number) {
  const random = seededRandom(SEED * 1_000_003 + index);
  // Pictures at hosts of the tables would be looked up in the DNS.
  const text = JSON.stringify(pick(random, originals)).replace(/https:\/\/a\.test\//g, 'data:image/png;base64,AA');
  const { provider: _, models: __, ...original }: Record<string, unknown> = JSON.parse(text);
  const asked = { ...original, model: pick(random, MODELS), ...(random() < 0.5 && { stream: true }) };
  return { body: mutateBody(random, asked), path: pick(random, PATHS) };
}

it(`POST /responses answers or refuses every body in form (${CASES} of the seed ${SEED})`, { timeout: 600_000 }, async () => {
  console.info(`SWITCHYARD_FUZZ_SEED=${SEED} SWITCHYARD_FUZZ_CASES=${CASES} repeats these bodies`);
  const sender = hostileSender(router.url);
  const statuses = new Map<number, number>();
  const answered: string[] = [];
  const send = async ({ body, path }: ReturnType<typeof requestAt>) => {
    for (;;) {
      const { pauses } = watch;
      const reply = await sender.send(path, 'POST', { authorization: `Bearer ${KEY}` }, body);
      // A process that was paused may have lost the worker of the call.
      if (watch.pauses === pauses || !reply.text.includes('worker of this call')) return reply;
    }
  };
  const cases = Array.from({ length: CASES }, (_, index) => index);
  await inParallel(cases, AT_ONCE, async (index) => {
    const asked = requestAt(index);
    const about = `case ${index} of the seed ${SEED} (${asked.body.what}): ${asked.body.bytes.toString().slice(0, 2_000)}`;
    const reply = await send(asked).catch((error: unknown) => {
      throw new Error(about, { cause: error });
    });
    statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
    try {
      if (reply.status === 200) {
        expectResponse(reply);
        answered.push(reply.generationId ?? '');
      } else {
        expectRefusal(reply);
        // 503: no provider meets what the body asks for.
        expect(reply.status === 503 ? JSON.parse(reply.text).error.type : reply.status).toSatisfy((is) => is === 'not_found' || (is >= 400 && is < 500));
      }
    } catch (error) {
      throw new Error(`${about}\nwas answered with ${reply.status} ${reply.text.slice(0, 2_000)}`, { cause: error });
    }
  });
  sender.close();
  console.info(`answers by status: ${JSON.stringify(Object.fromEntries([...statuses].sort(([one], [other]) => one - other)))}`);
  expect(answered.length).toBeGreaterThan(CASES / 10);
  expect(statuses.get(400) ?? 0).toBeGreaterThan(CASES / 5);

  // Each answer is billed once, and no reservation is left.
  expect(new Set(answered).size).toBe(answered.length);
  await eventually(
    async () => {
      const { rows } = await router.database.query('select generation_id from usage_ledger where generation_id = any($1)', [answered]);
      return rows.length === answered.length;
    },
    { timeoutMs: 60_000 },
  );
  await eventually(async () => (await router.database.query('select 1 from reservations')).rows.length === 0, { timeoutMs: 60_000 });
});
