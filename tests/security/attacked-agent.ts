import type { LightMyRequestResponse } from 'fastify';
import { openMemoryBus } from '../../bus/memory/memory-bus.ts';
import { operations } from '../../services/agent-gateway/openapi/operations.ts';
import { bundleOf, withVariables } from '../../services/agent-gateway/test-support/bundle.ts';
import { WEBHOOK_SECRET } from '../../services/agent-gateway/test-support/signed.ts';
import { BEARER, newSession, openTestDeployment, post, type TestDeployment } from '../../services/agent-gateway/test-support/test-deployment.ts';
import { systemClock } from '../../shared/clock.ts';
import { checkOutboundUrl } from '../../shared/http/outbound-guard.ts';
import { memoryCache } from '../../shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '../../shared/storage/pglite/test-support/open-test-database.ts';

const REFERENCE = '$' + '{HOOK_SECRET}';
const HOOK = { secret_env: REFERENCE, header: 'X-Hub-Signature-256', prefix: 'sha256=' };

const bundle = withVariables(
  bundleOf(
    { webhooks: [{ name: 'orders', secret_env: REFERENCE, header: 'X-Hub-Signature-256', prefix: 'sha256=', routines: ['triage'] }] },
    { id: 'triage', autonomous: { webhook: HOOK }, callback_url_allowlist: ['.allowed.example'] },
    { id: 'open' },
  ),
  { id: 'account', variables: [{ name: 'plan' }] },
);

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** An operation of the agent's API that needs the key. */
export interface Target {
  name: string;
  method: Method;
  /** With ids that exist. */
  url: string;
}

/** An agent gateway under attack: its routes with ids that exist, and the real guard of URLs. */
export interface AttackedAgent {
  deployment: TestDeployment;
  app(changes?: Parameters<TestDeployment['app']>[0]): ReturnType<TestDeployment['app']>;
  /** All operations behind the key. */
  targets: readonly Target[];
  session: string;
}

export async function openAttackedAgent(): Promise<AttackedAgent> {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  const deployment = await openTestDeployment({ database, bus, cache: memoryCache({ clock: systemClock }) });
  const rules = { allowHosts: new Set<string>() };
  const app: AttackedAgent['app'] = (changes = {}) =>
    deployment.app({
      bundle,
      secretNow: (reference) => (reference === REFERENCE ? WEBHOOK_SECRET : null),
      checkCallbackUrl: (url, hostAllowlist) => void checkOutboundUrl(url, rules, hostAllowlist),
      ...changes,
      waits: { loginMs: 0, ...changes.waits },
    });
  const first = app();
  const session = await newSession(first);
  await first.inject({ method: 'POST', url: '/customers', headers: BEARER, payload: { id: 'ada', name: 'Ada' } });
  const event = await post(first, session, { kind: 'user_message', text: 'Hello' });
  const triggered = await first.inject({
    method: 'POST',
    url: '/routines/triage/trigger',
    headers: BEARER,
    payload: { callback_url: 'https://hooks.allowed.example/' },
  });
  await database.query(`insert into dead_letters (id, source, reason, body, created_at) values ('lost', 'tool', 'r', '', now())`);
  const known: Record<string, string> = {
    dead_letter_id: 'lost',
    session_id: session,
    event_id: String(event.json().id),
    customer_id: 'ada',
    variable_name: 'plan',
    key: 'DEFAULT',
    routine_id: 'triage',
    run_id: String(triggered.json().run_id),
  };
  const targets = Object.entries(operations).flatMap(([name, { access }]): Target[] => {
    const [method = '', template = ''] = name.split(' ');
    const url = template.replace(/\{(\w+)\}/g, (_, parameter: string) => known[parameter] ?? 'unknown');
    return access === 'key' ? [{ name, method: method as Method, url }] : [];
  });
  await deployment.closeApps();
  return { deployment, app, targets, session };
}

/** All that a client can compare. Each answer of the events states how often to poll. */
export function faceOf({ statusCode, headers, body }: LightMyRequestResponse) {
  const { 'x-request-id': _id, 'x-polling-backoff': _backoff, date: _date, ...rest } = headers;
  return { statusCode, headers: rest, body };
}
