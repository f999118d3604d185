import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type PostedRequest, post } from '../../services/router-gateway/test-support/http-client.ts';
import type { Plan, ScriptedUpstream, Step, UnresponsiveUpstream } from '../upstreams/scripted-upstream.ts';
import { closedBaseUrl, openDeafUpstream, openScriptedUpstream } from '../upstreams/scripted-upstream.ts';
import type { DeploymentUnderTest } from './deployment-under-test.ts';
import { freeFolder } from './free-folder.ts';

/** Long enough for an upstream on a busy machine, and before a gateway sends its headers. */
const SILENCE_MS = 10_000;
/** As a limit: nothing but a client that leaves ends the waiting. */
export const LONGER_THAN_A_TEST_MS = 300_000;
/** Another key of the deployment. */
export const OTHER_KEY = 'sk-other-0123456789';

/** The test's providers. */
export interface ScriptedProviders {
  /** Executes the script in each request; `first` and `second` are the same one at two addresses. */
  upstream: ScriptedUpstream;
  /** Provider `unresponsive`: connecting to it never ends. */
  unresponsive: UnresponsiveUpstream;
  /** For every process of a deployment: these providers, and `closed`, at which no process listens. */
  settings: Record<string, string>;
  close(): Promise<void>;
}

/** A deployment with scripted upstreams. */
export interface ScriptedDeployment extends ScriptedProviders {
  /** For printed figures. */
  name: string;
  deployment: DeploymentUnderTest;
  /** Requests a completion at the next gateway. */
  post(body: object, headers?: Record<string, string>): PostedRequest;
}

/**
 * Opens the upstreams. The model `test/<provider>` has one endpoint; `test/<one>-<other>` has two. The sample agent
 * keeps its scripted model.
 *
 * @param silenceMs limit until the first token, connecting included, and between two reads
 */
export async function openScriptedProviders({ silenceMs = SILENCE_MS }: { silenceMs?: number } = {}): Promise<ScriptedProviders> {
  const upstream = await openScriptedUpstream();
  const unresponsive = await openDeafUpstream();
  const providers = { first: upstream.baseUrl('first'), second: upstream.baseUrl('second'), unresponsive: unresponsive.baseUrl, closed: await closedBaseUrl() };
  const slugs = Object.keys(providers);
  const model = (...names: string[]) => ({ id: `test/${names.join('-')}`, endpoints: names.map((provider) => ({ provider, upstream_model: provider })) });
  const config = {
    providers: [
      { slug: 'scripted', kind: 'scripted' },
      ...Object.entries(providers).map(([slug, baseUrl]) => ({ slug, name: slug, kind: 'openai-compatible', base_url: baseUrl })),
    ],
    models: [
      { id: 'scripted/assistant', aliases: ['switchyard/assistant'], endpoints: [{ provider: 'scripted', upstream_model: 'assistant' }] },
      ...slugs.map((slug) => model(slug)),
      ...slugs.flatMap((one) => slugs.filter((other) => other !== one).map((other) => model(one, other))),
    ],
    keys: [
      { id: 'one', key: '${ROUTER_API_KEY}' },
      { id: 'other', key: '${OTHER_API_KEY}' },
    ],
    // Connecting and whole calls may take longer than a test.
    timeouts: { connect_ms: LONGER_THAN_A_TEST_MS, first_token_ms: silenceMs, idle_ms: silenceMs, total_ms: 2 * LONGER_THAN_A_TEST_MS },
  };
  const path = join(await freeFolder('router'), 'router.json');
  await writeFile(path, JSON.stringify(config));
  return {
    upstream,
    unresponsive,
    settings: { ROUTER_CONFIG: path, OTHER_API_KEY: OTHER_KEY },
    close: async () => {
      await Promise.all([upstream.close(), unresponsive.close()]);
    },
  };
}

export function scriptedDeployment(name: string, providers: ScriptedProviders, deployment: DeploymentUnderTest): ScriptedDeployment {
  return {
    ...providers,
    name,
    deployment,
    post: (body, headers = {}) =>
      post(`${deployment.nextRouterUrl()}/api/v1/chat/completions`, body, { authorization: `Bearer ${deployment.keys.routerKey}`, ...headers }),
  };
}

let calls = 0;

/** A call with scripted upstreams. @param scripts by provider, the steps of each of its requests */
export function plannedCall(scripts: Record<string, Step[]>, options: Pick<Plan, 'newline' | 'pieceBytes'> = {}): Plan {
  return plannedRequests(Object.fromEntries(Object.entries(scripts).map(([provider, steps]) => [provider, [steps]])), options);
}

/** The same, with other steps for the first request of a provider, the second and so on. */
export function plannedRequests(scripts: Plan['scripts'], options: Pick<Plan, 'newline' | 'pieceBytes'> = {}): Plan {
  calls += 1;
  return { name: `call-${process.pid}-${calls}`, scripts, ...options };
}

/** The body of a request for it. Two providers are named in their order, in which no health of theirs moves them. */
export function requestFor(plan: Plan, model: string, stream: boolean) {
  const order = model.split('-');
  const provider = order.length === 1 ? {} : { provider: { order } };
  return { model: `test/${model}`, stream, ...provider, messages: [{ role: 'user', content: JSON.stringify(plan) }] };
}
