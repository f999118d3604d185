import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import type { ClusterProcess } from '../../../scripts/servers/start-cluster.mjs';
import { freePort } from '../../../scripts/servers/test-tcp.mjs';
import { builtInRouter } from '../../../services/standalone/built-in-router.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from '../../upstreams/openai-upstream.ts';
import { agentClient } from '../agent-client.ts';
import { type CallbackReceiver, openCallbackReceiver } from '../callback-receiver.ts';
import { freeFolder } from '../free-folder.ts';
import { type OtlpSink, openOtlpSink } from '../otlp-sink.ts';
import { root } from '../run-program.ts';
import { smtpError, startSmtpReceiver } from '../smtp-receiver.ts';
import { type Cluster, startCluster } from '../start-cluster.ts';
import { openRefusingProviders, REFUSING_MODELS, type RefusingProviders } from './refusing-providers.ts';
import { type Prometheus, startPrometheus } from './start-prometheus.ts';

/** A cluster that Prometheus scrapes, and what its alerts' causes act on. */
export interface Monitored {
  cluster: Cluster;
  prometheus: Prometheus;
  /** What Prometheus scrapes from the start, as host:port. */
  targets: readonly string[];
  upstream: OpenAiUpstream;
  receiver: CallbackReceiver;
  providers: RefusingProviders;
  /** Of the owners of exposed keys; answers each mail with this status of SMTP. */
  mails: { status: number };
  /** Of the traces of a cluster that is damaged. */
  collector: OtlpSink;
  /** The file that all router processes read. */
  routerFile: string;
  /** Of a cluster that is damaged: a host that stops itself right before its twenty-fifth commit. */
  pausing: ClusterProcess | null;
  /** One model call. @returns its status @throws when it is not answered within half a minute */
  complete(model: string, fields?: object, headers?: Record<string, string>): Promise<number>;
  /** One message in a conversation of its own. @returns whether it was accepted */
  say(text: string): Promise<boolean>;
  stop(): Promise<void>;
}

/** A call that was sent when the broker was lost waits for the broker, up to the call's deadline of ten minutes. */
const CALL_MS = 60_000;
/** A silent provider is waited for longer than any alert. */
const PROVIDER_MS = 500_000;
/** The server refuses a mail for now; the next attempt follows after a minute. */
const MAIL_LATER = 451;
const PAUSES = 'commit.sending:stop:25';

interface MonitoredOptions {
  /** Between two scrapes, and the most that one may take. */
  scrapeSeconds: number;
  /** It exports traces, and has a second host, which stops itself. */
  isDamaged?: boolean;
}

export async function startMonitored({ scrapeSeconds, isDamaged = false }: MonitoredOptions): Promise<Monitored> {
  const mails = { status: MAIL_LATER };
  const [upstream, providers, receiver, collector, mailServer] = await Promise.all([
    openOpenAiUpstream(),
    openRefusingProviders(),
    openCallbackReceiver(),
    openOtlpSink(),
    startSmtpReceiver({ onMail: () => Promise.reject(smtpError(mails.status, 'refused')) }),
  ]);
  const routerFile = await routerFileFor(upstream, providers);
  const env = {
    ROUTER_CONFIG: routerFile,
    OUTBOUND_ALLOW_HOSTS: receiver.host,
    SMTP_URL: `smtp://${mailServer.host}:${mailServer.port}`,
    MAIL_FROM: 'keys@switchyard.example',
    NODE_OPTIONS: `--import=${pathToFileURL(`${root}tests/helpers/hold-the-loop.mjs`)}`,
    ...(isDamaged && { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }),
  };
  const cluster = await startCluster({ env });
  const pausing = isDamaged ? await cluster.add('actor-host', { FAIL_POINT: PAUSES }) : null;
  const targets = cluster.processes.map(({ managementUrl }) => new URL(managementUrl).host);
  const prometheus = await startPrometheus(targets, { scrapeSeconds });
  const { keys } = cluster;
  return {
    cluster,
    prometheus,
    targets,
    upstream,
    receiver,
    providers,
    mails,
    collector,
    routerFile,
    pausing,
    complete: async (model, fields = {}, headers = {}) => {
      const response = await fetch(`${cluster.routerUrls[0]}/api/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${keys.routerKey}`, 'content-type': 'application/json', ...headers },
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
      await Promise.all([upstream.close(), providers.close(), receiver.close(), collector.close(), mailServer.close()]);
    },
  };
}

/** The scripted models, one that costs much, one that is hedged over two endpoints of the upstream, two whose providers cannot be reached or are silent, and those that are refused. */
async function routerFileFor(upstream: OpenAiUpstream, refusing: RefusingProviders): Promise<string> {
  const { providers = [], models = [], keys = [] } = z.record(z.string(), z.array(z.unknown())).parse(builtInRouter({ openAi: null }));
  const provider = (slug: string, baseUrl: string) => ({ slug, kind: 'openai-compatible', base_url: baseUrl });
  const refused = Object.entries(REFUSING_MODELS).map(([id, status]) => ({ id, slug: id.replace('test/', ''), status }));
  const config = {
    providers: [
      ...providers,
      ...['east', 'west'].map((slug) => provider(slug, upstream.baseUrl)),
      provider('gone', `http://127.0.0.1:${await freePort()}/v1`),
      provider('silent', refusing.baseUrlOf('silent')),
      ...refused.map(({ slug, status }) => provider(slug, refusing.baseUrlOf(status))),
    ],
    models: [
      ...models,
      ...refused.map(({ id, slug }) => ({ id, endpoints: [{ provider: slug, upstream_model: slug }] })),
      { id: 'test/hedged', hedge: true, order: 'file', endpoints: ['east', 'west'].map((slug) => ({ provider: slug, upstream_model: slug })) },
      { id: 'test/gone', endpoints: [{ provider: 'gone', upstream_model: 'gone' }] },
      { id: 'test/silent', endpoints: [{ provider: 'silent', upstream_model: 'silent' }] },
      { id: 'test/costly', endpoints: [{ provider: 'scripted', upstream_model: 'assistant', prices: { prompt: '0', completion: '0', request: '20' } }] },
    ],
    keys,
    timeouts: { first_token_ms: PROVIDER_MS, idle_ms: PROVIDER_MS },
  };
  const path = join(await freeFolder('router'), 'router.json');
  await writeFile(path, JSON.stringify(config));
  return path;
}
