import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import OpenAI, { type APIError } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DeploymentUnderTest, ROUTERS, shapes } from '../helpers/deployment-under-test.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { casesOfToday } from '../helpers/tier.ts';

const MANAGEMENT_KEY = 'sk-management-0123456789';
const TIMEOUT = { timeoutMs: 60_000 };
/** Of dollars, when sums of prices are compared. */
const DIGITS = 9;
const LIMIT_USD = 0.1;
const MAX_TOKENS = 8;
/** Far more than a key has room for: each call costs at least a token's price. */
const MOST_CALLS = 60;
/** US dollars per million tokens. */
const PRICES = { prompt: '1000', completion: '1000' };

async function routerFile(): Promise<string> {
  const path = join(await freeFolder('paid'), 'router.json');
  const assistant = { id: 'scripted/assistant', aliases: ['switchyard/assistant'] };
  await writeFile(
    path,
    JSON.stringify({
      providers: [{ slug: 'scripted', kind: 'scripted' }],
      models: [{ ...assistant, endpoints: [{ provider: 'scripted', upstream_model: 'assistant', prices: PRICES }] }],
      keys: [
        { id: 'agent', key: '${ROUTER_API_KEY}' },
        { id: 'manager', key: '${ROUTER_MANAGEMENT_KEY}', management: true },
      ],
    }),
  );
  return path;
}

describe.each(casesOfToday(shapes))('the router as a paid service, $name', (shape) => {
  let deployment: DeploymentUnderTest;
  beforeAll(async () => {
    deployment = await shape.start({ ROUTER_CONFIG: await routerFile(), ROUTER_MANAGEMENT_KEY: MANAGEMENT_KEY }, ROUTERS);
  });
  afterAll(() => deployment?.stop());

  async function get(path: string, key: string): Promise<Record<string, unknown>> {
    const response = await fetch(`${deployment.nextRouterUrl()}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } });
    return ((await response.json()) as { data?: Record<string, unknown> }).data ?? {};
  }

  it('DESIGN 8: a key that is made over HTTP is used by a client of OpenAI, is billed, and is refused at its limit', async () => {
    const made = await fetch(`${deployment.nextRouterUrl()}/api/v1/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'shop', limit: LIMIT_USD }),
    });
    expect(made.status).toBe(201);
    const { key, data } = (await made.json()) as { key: string; data: { hash: string } };

    let spent = 0;
    let calls = 0;
    let refusal: APIError | null = null;
    while (refusal === null && calls < MOST_CALLS) {
      const client = new OpenAI({ baseURL: `${deployment.nextRouterUrl()}/api/v1`, apiKey: key, maxRetries: 0 });
      const messages = [{ role: 'user' as const, content: 'Hello!' }];
      const answer = await client.chat.completions.create({ model: 'scripted/assistant', messages, max_tokens: MAX_TOKENS }).catch((error: APIError) => error);
      if (answer instanceof Error) {
        refusal = answer;
        break;
      }
      calls += 1;
      const { cost } = answer.usage as unknown as { cost: number };
      expect(answer.choices[0]?.message.content).toMatch(/\w/);
      expect(cost).toBeGreaterThan(0);
      spent += cost;
      expect(await get(`/generation?id=${answer.id}`, key)).toMatchObject({ id: answer.id, total_cost: cost, provider_name: 'scripted' });
    }

    expect([refusal?.status, refusal?.type]).toEqual([402, 'payment_required']);
    expect(calls).toBeGreaterThan(1);
    expect(spent).toBeLessThanOrEqual(LIMIT_USD);
    // The ledger follows the answers.
    await eventually(async () => Math.abs(Number((await get('/key', key))['usage']) - spent) < 10 ** -DIGITS, TIMEOUT);
    const record = await get('/key', key);
    expect(record).toMatchObject({ limit: LIMIT_USD, usage: expect.closeTo(spent, DIGITS), limit_remaining: expect.closeTo(LIMIT_USD - spent, DIGITS) });
    expect(await get(`/keys/${data.hash}`, MANAGEMENT_KEY)).toMatchObject({ name: 'shop', usage: record['usage'] });
  });
});
