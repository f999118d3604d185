import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { seededRandom } from '../chaos/seeded-random.ts';
import { eventually } from '../helpers/eventually.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { watchPauses } from '../helpers/pauses.ts';
import { requestTables, validCasesOf } from '../helpers/request-tables.ts';
import type { RouterInProcess } from '../helpers/router-in-process.ts';
import { tier } from '../helpers/tier.ts';
import { mutateBody } from './mutate-body.ts';
import { pick } from './mutate-json.ts';
import { MODELS, openRouterOfDialects } from './router-of-dialects.ts';
import { expectAnswer, expectRefusal, type HostileReply, hostileSender } from './send-hostile.ts';

/** SWITCHYARD_FUZZ_SEED repeats a run, SWITCHYARD_FUZZ_CASES is its length. */
const SEED = Number(process.env['SWITCHYARD_FUZZ_SEED'] ?? Math.floor(Date.now() / 1_000) % 1_000_000);
const CASES = Number(process.env['SWITCHYARD_FUZZ_CASES'] ?? (tier === 'deep' ? 10_000 : 800));
const AT_ONCE = 8;
const KEYS = { free: 'sk-free', limited: 'sk-limited', rated: 'sk-rated' };
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64');

const corpus = z.array(z.object({ request: z.looseObject({}) }));
const folder = new URL('../corpus/router/valid/', import.meta.url);
const originals: object[] = [
  ...readdirSync(folder).flatMap((name) => corpus.parse(JSON.parse(readFileSync(new URL(name, folder), 'utf8'))).map(({ request }) => request)),
  ...validCasesOf(requestTables).map(({ request }) => Object(request)),
];

const pictures = createServer((_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(PNG));
let router: RouterInProcess;
let pictureHost: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => pictures.listen(0, '127.0.0.1', resolve));
  const address = pictures.address();
  pictureHost = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  router = await openRouterOfDialects({
    keys: [
      { id: 'free', key: '${KEY_FREE}' },
      { id: 'limited', key: '${KEY_LIMITED}', limit: '1000000' },
      { id: 'rated', key: '${KEY_RATED}', limits: { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000, calls_at_once: 1_000 } },
    ],
    variables: { KEY_FREE: KEYS.free, KEY_LIMITED: KEYS.limited, KEY_RATED: KEYS.rated },
    prices: { image: '0.001', audio: '0.001', request: '0.0001' },
    responseFormats: ['json_object', 'json_schema', 'grammar', 'python'],
    outboundAllowHosts: new Set([pictureHost]),
  });
});

afterAll(async () => {
  watch.stop();
  await router.close();
  await new Promise((resolve) => pictures.close(resolve));
});

/** One request, which the seed and its number decide. */
function requestAt(index: number) {
  const random = seededRandom(SEED * 1_000_003 + index);
  // Pictures at hosts of the corpus would be looked up in the DNS.
  const text = JSON.stringify(pick(random, originals)).replace(/https?:\/\/[^/"\\\s]+\//g, `http://${pictureHost}/`);
  const { provider: _, models: __, ...original }: Record<string, unknown> = JSON.parse(text);
  // Preferences exclude providers, rightly: few have them here.
  const preferences = random() < 0.2 ? { provider: JSON.parse(text).provider } : {};
  const asked = { ...original, ...preferences, model: pick(random, MODELS), ...(random() < 0.4 && { stream: true }) };
  return { body: mutateBody(random, asked), key: pick(random, [KEYS.free, KEYS.free, KEYS.free, KEYS.limited, KEYS.rated]) };
}

const watch = watchPauses();

/** Again when the process was paused meanwhile: the call may have lost its worker. */
async function sendUnpaused(send: () => Promise<HostileReply>): Promise<HostileReply> {
  for (;;) {
    const { pauses } = watch;
    const reply = await send();
    if (watch.pauses === pauses || !reply.text.includes('worker of this call')) return reply;
  }
}

describe('POST /chat/completions', () => {
  it(`answers or refuses every body in form (${CASES} of the seed ${SEED})`, { timeout: 600_000 }, async () => {
    console.info(`SWITCHYARD_FUZZ_SEED=${SEED} SWITCHYARD_FUZZ_CASES=${CASES} repeats these bodies`);
    const sender = hostileSender(router.url);
    const statuses = new Map<number, number>();
    const answered: string[] = [];
    await inParallel(
      Array.from({ length: CASES }, (_, index) => index),
      AT_ONCE,
      async (index) => {
        const { body, key } = requestAt(index);
        const about = `case ${index} of the seed ${SEED} (${body.what}): ${body.bytes.toString().slice(0, 2_000)}`;
        const reply = await sendUnpaused(() => sender.send('/api/v1/chat/completions', 'POST', { authorization: `Bearer ${key}` }, body)).catch(
          (error: unknown) => {
            throw new Error(about, { cause: error });
          },
        );
        statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
        try {
          if (reply.status === 200) {
            expectAnswer(reply);
            answered.push(reply.generationId ?? '');
          } else {
            expectRefusal(reply);
            // 503: no provider meets what the body asks for.
            expect(reply.status === 503 ? JSON.parse(reply.text).error.type : reply.status).toSatisfy((is) => is === 'not_found' || (is >= 400 && is < 500));
          }
        } catch (error) {
          throw new Error(`${about}\nwas answered with ${reply.status} ${reply.text.slice(0, 2_000)}`, { cause: error });
        }
      },
    );
    sender.close();
    console.info(`answers by status: ${JSON.stringify(Object.fromEntries([...statuses].sort(([one], [other]) => one - other)))}`);
    expect(answered.length).toBeGreaterThan(CASES / 10);
    expect(statuses.get(400) ?? 0).toBeGreaterThan(CASES / 5);

    // Each answer is billed once, and no reservation is left.
    expect(new Set(answered).size).toBe(answered.length);
    const rows = await eventually(
      async () => {
        const { rows: found } = await router.database.query('select generation_id from usage_ledger where generation_id = any($1)', [answered]);
        return found.length === answered.length ? found : null;
      },
      { timeoutMs: 60_000 },
    );
    expect(rows).toHaveLength(answered.length);
    await eventually(async () => (await router.database.query('select 1 from reservations')).rows.length === 0, { timeoutMs: 60_000 });
  });
});
