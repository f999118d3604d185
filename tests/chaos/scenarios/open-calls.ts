import { expect } from 'vitest';
import { post } from '../../../services/router-gateway/test-support/http-client.ts';
import { eventually } from '../../helpers/eventually.ts';
import { plannedCall, requestFor } from '../../helpers/scripted-deployment.ts';
import { type Environment, TIMEOUT_MS } from '../environment.ts';

const CALLS = 100;
const EVERY_MS = 1_000;
/** A broker whose store is rolled back meanwhile redelivers what it had delivered since. */
const MOST_TIMES = 2;
/** For a busy machine: without a check for interest they stay open for minutes. The measured times, 32 to 33 s on an idle one, are printed. */
const CLOSED_MS = 90_000;

/**
 * Kills a gateway with a hundred streams that are not resumed. The check takes half a minute, in which other faults may be injected.
 *
 * @returns checks that every upstream of it was closed in time
 */
export async function killGatewayWithOpenCalls(environment: Environment): Promise<() => Promise<string>> {
  const [gateway] = environment.cluster.running('router-gateway');
  if (gateway?.url == null) throw new Error('there is no gateway');
  const url = `${gateway.url}/api/v1/chat/completions`;
  const plans = Array.from({ length: CALLS }, () => plannedCall({ first: [{ say: 'word', times: 10_000, everyMs: EVERY_MS }] }));
  for (const plan of plans)
    post(url, requestFor(plan, 'first', true), { authorization: `Bearer ${environment.cluster.keys.routerKey}` }).answer.catch(() => {});
  await eventually(() => plans.every(({ name }) => (environment.upstream.calls(name)[0]?.said ?? 0) > 0), { timeoutMs: TIMEOUT_MS });
  await environment.end(gateway, 'SIGKILL');
  const killedAtMs = performance.now();
  await environment.add('router-gateway');
  return async () => {
    const calls = () => plans.flatMap(({ name }) => environment.upstream.calls(name));
    await eventually(() => calls().every(({ leftAtMs }) => leftAtMs !== null), { timeoutMs: TIMEOUT_MS });
    const openForMs = calls().map(({ leftAtMs }) => (leftAtMs ?? 0) - killedAtMs);
    expect(Math.max(...plans.map(({ name }) => environment.upstream.calls(name).length)), 'a call was made too often').toBeLessThanOrEqual(MOST_TIMES);
    expect(Math.max(...openForMs), 'an upstream of a dead gateway was open for too long').toBeLessThanOrEqual(CLOSED_MS);
    return `${CALLS} upstreams of a dead gateway were closed after ${(Math.min(...openForMs) / 1_000).toFixed(1)} to ${(Math.max(...openForMs) / 1_000).toFixed(1)} s`;
  };
}
