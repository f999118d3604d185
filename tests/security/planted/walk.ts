import { createHmac } from 'node:crypto';
import { operations } from '../../../services/agent-gateway/openapi/operations.ts';
import { eventually } from '../../helpers/eventually.ts';
import type { Cluster } from '../../helpers/start-cluster.ts';
import type { Planted } from './credentials.ts';
import { ECHOES } from './echoing-servers.ts';
import { KINDS, PLAIN, ROUTINE, WEBHOOK } from './planted-files.ts';

/** A word that each place has: what is searched has really been through it. */
export const SPOKEN = 'rhubarb';
const WAIT = { timeoutMs: 120_000 };

/** Of the router's API, below `/api/v1/`. */
const PATHS = [
  ...['keys', 'credits', 'activity', 'key', 'models', 'models/count', 'models/user', 'models/x/y/endpoints', 'embeddings/models', 'endpoints/zdr', 'providers'],
  ...['generation?id=gen-1', 'generations/gen-1/stream', 'platform/agents', 'platform/prompts', 'nothing'],
];

interface Ask {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

interface Answer {
  status: number;
  body: string;
}

/** Asks, and keeps what is answered. @param bearer null: none */
type Client = (url: string, bearer: string | null, ask?: Ask) => Promise<Answer>;

export function recordingClient(answers: string[]): Client {
  return async (url, bearer, { method = 'GET', headers = {}, body } = {}) => {
    const authorization = bearer === null ? {} : { authorization: `Bearer ${bearer}` };
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const sent = { ...authorization, ...(text !== undefined && { 'content-type': 'application/json' }), ...headers };
    const signal = AbortSignal.timeout(WAIT.timeoutMs);
    const response = await fetch(url, { method, headers: sent, signal, redirect: 'manual', ...(text !== undefined && { body: text }) });
    const answer = { status: response.status, body: await response.text() };
    answers.push(`${method} ${new URL(url).pathname} ${answer.status} ${JSON.stringify([...response.headers])} ${answer.body}`);
    return answer;
  };
}

interface Walk {
  cluster: Cluster;
  planted: Planted;
  client: Client;
  receiverPort: number;
}

const of = (planted: Planted, name: string): string => planted.get(name) ?? '';

/** Calls of every dialect, whole and streamed, whose providers quote the key in every way; management, wrong keys, documents. */
export async function walkRouter({ cluster, planted, client }: Walk): Promise<void> {
  const [base = ''] = cluster.routerUrls;
  const key = of(planted, 'ROUTER_API_KEY');
  const messages = [{ role: 'user', content: SPOKEN }];
  const call = (model: string, more: object = {}, bearer = key) =>
    client(`${base}/api/v1/chat/completions`, bearer, { method: 'POST', headers: { 'x-openrouter-metadata': 'true' }, body: { model, messages, ...more } });
  await call(PLAIN);
  await call(PLAIN, { stream: true, debug: { echo_upstream_body: true } });
  const everyWay = async (kind: string) => {
    for (const how of ECHOES) for (const stream of [false, true]) await call(`${kind}/${how}`, { stream, provider: { allow_fallbacks: false } });
  };
  await Promise.all(KINDS.map(everyWay));
  await call('openai-compatible/echo-400', { models: KINDS.map((kind) => `${kind}/echo-500`) });
  await client(`${base}/api/v1/responses`, key, { method: 'POST', body: { model: 'openai-compatible/echo-401', input: SPOKEN, stream: true } });
  await client(`${base}/api/v1/embeddings`, key, { method: 'POST', body: { model: 'openai-compatible/echo-401', input: SPOKEN } });

  const wrong = of(planted, 'a wrong key');
  await call(PLAIN, {}, wrong);
  await client(`${base}/api/v1/models?key=${wrong}`, wrong);
  await client(`${base}/api/v1/keys`, key);
  const management = of(planted, 'ROUTER_MANAGEMENT_KEY');
  await manageKeys({ base, planted, client, management, call });
  for (const path of PATHS) for (const one of [management, key, wrong]) await client(`${base}/api/v1/${path}`, one);
  for (const path of ['auth/keys/code', 'auth/keys'])
    for (const one of [management, wrong])
      await client(`${base}/api/v1/${path}`, one, { method: 'POST', body: { callback_url: `https://x.example/?${wrong}`, code: wrong, code_verifier: one } });
  await client(`${base}/auth`, null, { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: `management_key=${wrong}` });

  const basic = Buffer.from(`${of(planted, 'PLATFORM_PUBLIC_KEY')}:${of(planted, 'PLATFORM_SECRET_KEY')}`).toString('base64');
  const document = { id: 'doc', version: 1, text: SPOKEN };
  for (const authorization of [`Basic ${basic}`, `Basic ${Buffer.from(`pk:${wrong}`).toString('base64')}`]) {
    await client(`${base}/api/v1/platform/prompts/doc/versions/1`, null, { method: 'PUT', headers: { authorization }, body: document });
    await client(`${base}/api/v1/platform/agents`, null, { headers: { authorization } });
    await client(`${base}/api/v1/otel/v1/traces`, null, { method: 'POST', headers: { authorization }, body: { resourceSpans: [] } });
  }
}

interface Managing {
  base: string;
  planted: Planted;
  client: Client;
  management: string;
  call(model: string, more: object, bearer: string): Promise<Answer>;
}

/** A key is made, used, changed and deleted. Its secret is shown in one answer, which is not kept. */
async function manageKeys({ base, planted, client, management, call }: Managing): Promise<void> {
  const headers = { authorization: `Bearer ${management}`, 'content-type': 'application/json' };
  const made = await fetch(`${base}/api/v1/keys`, { method: 'POST', headers, body: JSON.stringify({ name: SPOKEN, limit: 1 }) });
  const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
  planted.set('a key that was made', key.replace(/^sk-[a-z]+-v\d-/, ''));
  await call(PLAIN, {}, key);
  await client(`${base}/api/v1/key`, key);
  await client(`${base}/api/v1/keys/${data.hash}`, management, { method: 'PATCH', body: { disabled: true } });
  await call(PLAIN, {}, key);
  await client(`${base}/api/v1/keys/${data.hash}`, management, { method: 'DELETE' });
}

/** Turns, runs, webhooks, logins and event webhooks: with right keys and wrong ones, and with models, tools and receivers that quote theirs. */
export async function walkAgent({ cluster, planted, client, receiverPort }: Walk): Promise<void> {
  const [base = ''] = cluster.agentUrls;
  const key = of(planted, 'AGENT_API_KEY');
  const wrong = of(planted, 'a wrong key');
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) => client(`${base}${path}`, key, { method: 'POST', body, headers });
  const receiver = `http://127.0.0.1:${receiverPort}`;

  const { id } = JSON.parse((await post('/sessions', { event_webhook_url: `${receiver}/events`, title: SPOKEN })).body);
  for (const text of [SPOKEN, 'echo-401', 'echo-400', 'echo-event', 'echo-broken']) {
    await post(`/sessions/${id}/events`, { kind: 'user_message', text });
    await ready(client, `${base}/sessions/${id}`, key);
  }
  await post(`/sessions/${id}/tool_events`, { tool_id: 'shop:order', result: { [SPOKEN]: 1 } });
  await post('/customers', { id: 'ada', name: SPOKEN });
  for (const path of ['/sessions', `/sessions/${id}/events?wait_for_data=0`, '/customers', '/runs', '/openapi.json', '/journeys'])
    await client(`${base}${path}`, key);
  await client(`${base}/runs?key=${wrong}`, wrong);
  await client(`${base}/sessions`, wrong, { method: 'POST', body: { title: SPOKEN } });

  const runs: string[] = [];
  for (const routine of [ROUTINE, 'with-tools']) {
    const { run_id: run } = JSON.parse((await post(`/routines/${routine}/trigger`, { callback_url: `${receiver}/${routine}`, input: { [SPOKEN]: 1 } })).body);
    runs.push(run);
  }
  await post(`/routines/${ROUTINE}/trigger`, { callback_url: `https://user:${wrong}@127.0.0.1/` });
  const delivery = JSON.stringify({ [SPOKEN]: 1 });
  const signature = createHmac('sha256', of(planted, 'a secret of a bundle')).update(delivery).digest('hex');
  planted.set('a signature', signature);
  for (const signed of [signature, wrong])
    await client(`${base}/webhooks/${WEBHOOK}`, null, { method: 'POST', body: delivery, headers: { 'x-signature': signed } });
  await eventually(
    async () => (await Promise.all(runs.map((run) => client(`${base}/runs/${run}`, key)))).every(({ body }) => /"(?:succeeded|failed)"/.test(body)),
    WAIT,
  );
  for (const run of runs) await client(`${base}/runs/${run}/steps`, key);

  // The cookie is the key; the answer that sets it is not kept.
  const login = await fetch(`${base}/auth/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ key }) });
  const [cookie = ''] = login.headers.get('set-cookie')?.split(';') ?? [];
  await client(`${base}/chat`, null, { headers: { cookie } });
  await client(`${base}/sessions`, null, { method: 'POST', headers: { cookie, origin: 'https://evil.example' }, body: {} });
  await client(`${base}/auth/login`, null, { method: 'POST', body: { key: wrong, next: '/chat' } });
  await everyOperation(base, { session_id: id, customer_id: 'ada', routine_id: ROUTINE, run_id: runs[0] ?? '' }, client, [wrong, key]);
}

/** Every operation of the agent's API, with the right key and a wrong one; what deletes comes last. */
async function everyOperation(base: string, ids: Record<string, string>, client: Client, keys: readonly string[]): Promise<void> {
  const all = Object.keys(operations).map((name) => name.split(' ') as [method: string, template: string]);
  const deleting = (method: string) => Number(method === 'DELETE');
  for (const [method, template] of all.sort(([one], [other]) => deleting(one) - deleting(other)))
    for (const key of keys) {
      const path = template.replace(/\{(\w+)\}/g, (_, parameter: string) => ids[parameter] ?? SPOKEN);
      const body = method === 'GET' || method === 'DELETE' ? {} : { body: { [SPOKEN]: key } };
      await client(`${base}${path}?wait_for_data=0`, key, { method, ...body });
    }
}

async function ready(client: Client, url: string, key: string): Promise<void> {
  await eventually(async () => JSON.parse((await client(url, key)).body).status === 'ready', WAIT);
}
