import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listenFailure } from '../http-server/listen-failure.ts';
import { urlOfServer } from '../http-server/url-of-server.ts';
import type { MetricsRegistry } from '../telemetry/open-metrics.ts';
import type { Readiness } from './readiness.ts';

/** Probes are short and few. */
const MAX_CONNECTIONS = 64;
const REQUEST_TIMEOUT_MS = 5_000;

/** The HTTP listener for probes and metrics. */
export interface ManagementListener {
  /** Such as `http://127.0.0.1:9090`. */
  url: string;
  stop(): Promise<void>;
}

export interface ManagementListenerDeps {
  host: string;
  /** 0: any free port. */
  port: number;
  readiness: Readiness;
  metrics: Pick<MetricsRegistry, 'contentType' | 'text'>;
}

/**
 * Opens the operators' HTTP listener: `GET /live` (the process runs), `GET /ready` (200, or 503 with the failed checks), `GET /metrics`
 * (Prometheus). Without authentication; it exposes no secrets.
 * @throws as `listenFailure`
 */
export async function openManagementListener({ host, port, readiness, metrics }: ManagementListenerDeps): Promise<ManagementListener> {
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: 1_000 });
  server.maxConnections = MAX_CONNECTIONS;
  server.on('request', (request, response) => {
    answer(request, response, { readiness, metrics }).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(listenFailure({ host, port, settings: { host: 'MANAGEMENT_HOST', port: 'MANAGEMENT_PORT' } }, cause)));
    server.listen(port, host, resolve);
  });
  return {
    url: urlOfServer(server),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { readiness, metrics }: Pick<ManagementListenerDeps, 'readiness' | 'metrics'>,
): Promise<void> {
  request.resume(); // discards the body
  const [path] = (request.url ?? '/').split('?');
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (isRead && path === '/live') return send(response, 200, { status: 'ok' });
  if (isRead && path === '/ready') {
    const report = await readiness.report();
    return send(response, report.status === 'ready' ? 200 : 503, report);
  }
  if (isRead && path === '/metrics') {
    const text = await metrics.text();
    response.writeHead(200, { 'content-type': metrics.contentType, 'cache-control': 'no-store' }).end(text);
    return;
  }
  send(response, 404, { error: 'there is nothing at this address' });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(body));
}
