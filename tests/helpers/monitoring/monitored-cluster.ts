import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { freePort } from '../../../scripts/servers/test-tcp.mjs';
import { builtInRouter } from '../../../services/standalone/built-in-router.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from '../../upstreams/openai-upstream.ts';
import { agentClient } from '../agent-client.ts';
import { type CallbackReceiver, openCallbackReceiver } from '../callback-receiver.ts';
import { freeFolder } from '../free-folder.ts';
import { root } from '../run-program.ts';
import { type Cluster, startCluster } from '../start-cluster.ts';
import { openRefusingProviders, REFUSING_MODELS } from './refusing-providers.ts';
import { type Prometheus, startPrometheus } from './start-prometheus.ts';

/** A cluster that Prometheus scrapes, and what its alerts' causes act on. */
export interface Monitored {
  cluster: Cluster;
  prometheus: Prometheus;
  upstream: OpenAiUpstream;
  receiver: CallbackReceiver;
  /** The file that all router processes read. */
  routerFile: string;
  /** One model call. @returns its status @throws when it is not answered within half a minute */
  complete(model: string, fields?: object): Promise<number>;
  /** One message in a conversation of its own. @returns whether it was accepted */
  say(text: string): Promise<boolean>;
  stop(): Promise<void>;
}

/** A call that was sent when the broker was lost waits for the broker, up to the call's deadline of ten minutes. */
const CALL_MS = 30_000;

/** @param scrapeSeconds between two scrapes, and the most that one may take */
export async function startMonitored({ scrapeSeconds }: { scrapeSeconds: number }): Promise<Monitored> {
  const [upstream, refusing, receiver] = await Promise.all([openOpenAiUpstream(), openRefusingProviders(), openCallbackReceiver()]);
  const routerFile = await routerFileFor(upstream, refusing);
  const env = {
    ROUTER_CONFIG: routerFile,
    OUTBOUND_ALLOW_HOSTS: receiver.host,
    NODE_OPTIONS: `--import=${pathToFileURL(`${root}tests/helpers/hold-the-loop.mjs`)}`,
  };
  const cluster = await startCluster({ env });
  const targets = cluster.processes.map(({ managementUrl }) => new URL(managementUrl).host);
  const prometheus = await startPrometheus(targets, { scrapeSeconds });
  const { keys } = cluster;
  return {
    cluster,
    prometheus,
    upstream,
    receiver,
    routerFile,
    complete: async (model, fields = {}) => {
      const response = await fetch(`${cluster.routerUrls[0]}/api/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${keys.routerKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], ...fields }),
        signal: AbortSignal.timeout(CALL_MS),
      });
      await response.arrayBuffer();
      return response.status;
    },
    say: (text) => {
      const agent = agentClient(cluster.agentUrls[0] ?? '', keys.agentKey);
      const said = agent.createSession().then(({ id }) => agent.postMessage(id, text));
      return said.then(
        () => true,
        () => false,
      );
    },
    stop: async () => {
      await prometheus.stop();
      await cluster.stop();
      await Promise.all([upstream.close(), refusing.close(), receiver.close()]);
    },
  };
}

/** The scripted models, one that is hedged over two endpoints of the upstream, one whose provider does not answer, and those that are refused. */
async function routerFileFor(upstream: OpenAiUpstream, refusing: { baseUrlOf(status: number): string }): Promise<string> {
  const { providers = [], models = [], keys = [] } = z.record(z.string(), z.array(z.unknown())).parse(builtInRouter({ openAi: null }));
  const provider = (slug: string, baseUrl: string) => ({ slug, kind: 'openai-compatible', base_url: baseUrl });
  const refused = Object.entries(REFUSING_MODELS).map(([id, status]) => ({ id, slug: id.replace('test/', ''), status }));
  const config = {
    providers: [
      ...providers,
      ...['east', 'west'].map((slug) => provider(slug, upstream.baseUrl)),
      provider('gone', `http://127.0.0.1:${await freePort()}/v1`),
      ...refused.map(({ slug, status }) => provider(slug, refusing.baseUrlOf(status))),
    ],
    models: [
      ...models,
      ...refused.map(({ id, slug }) => ({ id, endpoints: [{ provider: slug, upstream_model: slug }] })),
      { id: 'test/hedged', hedge: true, order: 'file', endpoints: ['east', 'west'].map((slug) => ({ provider: slug, upstream_model: slug })) },
      { id: 'test/gone', endpoints: [{ provider: 'gone', upstream_model: 'gone' }] },
    ],
    keys,
  };
  const path = join(await freeFolder('router'), 'router.json');
  await writeFile(path, JSON.stringify(config));
  return path;
}
