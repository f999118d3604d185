import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { seededRandom } from '../chaos/seeded-random.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { openRouterInProcess, type RouterInProcess } from '../helpers/router-in-process.ts';
import { tier } from '../helpers/tier.ts';
import { mutateBody } from './mutate-body.ts';
import { pick } from './mutate-json.ts';
import { expectRefusal, hostileSender } from './send-hostile.ts';

/** SWITCHYARD_FUZZ_SEED repeats a run, SWITCHYARD_FUZZ_CASES is its length for each route. */
const SEED = Number(process.env['SWITCHYARD_FUZZ_SEED'] ?? Math.floor(Date.now() / 1_000) % 1_000_000);
const CASES = Number(process.env['SWITCHYARD_FUZZ_CASES'] ?? (tier === 'deep' ? 2_000 : 120));
const AT_ONCE = 8;
const MANAGER = 'sk-manager-0123456789';
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

const key = {
  name: 'Shop north',
  limit: 5,
  limit_reset: 'daily',
  include_byok_in_limit: false,
  expires_at: '2030-01-31T12:00:00Z',
  owner_email: 'owner@example.com',
  requests_per_minute: 60,
  tokens_per_minute: 10_000,
  calls_at_once: 3,
};
const challenge = { code_challenge: createHash('sha256').update('verifier').digest('base64url'), code_challenge_method: 'S256' };
const approval = { ...challenge, callback_url: 'https://app.example.com/back?x=1', key_label: 'App', usage_limit_type: 'monthly', expires_at: key.expires_at };

interface Route {
  method: 'POST' | 'PATCH';
  path: string;
  valid: object[];
  /** A form, whose answers are pages. */
  isForm?: true;
}

const routes: Route[] = [
  { method: 'POST', path: '/api/v1/keys', valid: [key, { name: 'a' }, { ...key, creator_user_id: 'user-1', workspace_id: 'default', disabled: true }] },
  { method: 'PATCH', path: '/api/v1/keys/HASH', valid: [key, {}, { disabled: false, limit: null, limit_reset: null, owner_email: null, calls_at_once: null }] },
  { method: 'POST', path: '/api/v1/auth/keys/code', valid: [{ ...approval, limit: 5 }, { callback_url: 'http://localhost:3000/' }] },
  { method: 'POST', path: '/api/v1/auth/keys', valid: [{ code: 'auth_code_1', code_verifier: 'verifier', code_challenge_method: 'S256' }, { code: 'x' }] },
  {
    method: 'POST',
    path: '/auth',
    valid: [
      { ...approval, limit: '5.00', management_key: MANAGER },
      { ...challenge, management_key: 'wrong' },
    ],
    isForm: true,
  },
];

const record = z.looseObject({ hash: z.string(), name: z.string(), limit: z.number().nullable(), disabled: z.boolean() });
let router: RouterInProcess;
let hash: string;

beforeAll(async () => {
  const config = {
    providers: [{ slug: 'scripted', kind: 'scripted' }],
    models: [{ id: 'scripted/model', endpoints: [{ provider: 'scripted', upstream_model: 'assistant' }] }],
    keys: [{ id: 'manager', key: '${MANAGER_KEY}', management: true }],
  };
  router = await openRouterInProcess({ config, variables: { MANAGER_KEY: MANAGER } });
  const made = await fetch(`${router.url}/api/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGER}`, 'content-type': 'application/json' },
    body: JSON.stringify(key),
  });
  hash = z.object({ data: record }).parse(await made.json()).data.hash;
});

afterAll(() => router.close());

const keyRows = async () => (await router.database.query<{ name: string; limit_nano: string | null }>('select name, limit_nano from router_keys')).rows;

describe.each(routes)('$method $path', ({ method, path, valid, isForm }) => {
  it(`answers or refuses every body in form (${CASES} of the seed ${SEED})`, { timeout: 600_000 }, async () => {
    const sender = hostileSender(router.url);
    const statuses = new Map<number, number>();
    const before = (await keyRows()).length;
    await inParallel(
      Array.from({ length: CASES }, (_, index) => index),
      AT_ONCE,
      async (index) => {
        const random = seededRandom(SEED * 1_000_003 + index);
        const json = mutateBody(random, pick(random, valid));
        const body = isForm ? { ...json, bytes: asForm(json.bytes), headers: { 'content-type': 'application/x-www-form-urlencoded' } } : json;
        const about = `case ${index} of the seed ${SEED} (${body.what}): ${body.bytes.toString().slice(0, 2_000)}`;
        const reply = await sender.send(path.replace('HASH', hash), method, { authorization: `Bearer ${MANAGER}` }, body).catch((error: unknown) => {
          throw new Error(about, { cause: error });
        });
        statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
        try {
          expect(reply.status).toBeLessThan(500);
          if (reply.status >= 400 && !reply.contentType.startsWith('text/html')) expectRefusal(reply);
          else expect(reply.status === 403 || reply.status < 400).toBe(true);
        } catch (error) {
          throw new Error(`${about}\nwas answered with ${reply.status} ${reply.text.slice(0, 2_000)}`, { cause: error });
        }
      },
    );
    sender.close();
    console.info(`${method} ${path}, seed ${SEED}: ${JSON.stringify(Object.fromEntries(statuses))}`);
    expect(statuses.get(400) ?? 0).toBeGreaterThan(CASES / 10);

    const rows = await keyRows();
    expect(rows.length - before).toBe(statuses.get(201) ?? 0);
    for (const { name, limit_nano: limit } of rows) {
      expect(name).not.toMatch(UNPRINTABLE);
      expect(limit === null || Number(limit) >= 0).toBe(true);
    }
  });
});

/** As a browser would send the same fields; a body that is no object stays as it is. */
function asForm(bytes: Buffer): Buffer {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    if (typeof value !== 'object' || value === null) return bytes;
    const form = new URLSearchParams();
    for (const [name, field] of Object.entries(value)) form.append(name, typeof field === 'string' ? field : JSON.stringify(field));
    return Buffer.from(form.toString());
  } catch {
    return bytes;
  }
}
