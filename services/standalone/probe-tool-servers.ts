import { setTimeout as delay } from 'node:timers/promises';
import { ToolFailure } from '#services/effect-worker/tools/tool-failure.ts';
import { ToolServers } from '#services/effect-worker/tools/tool-servers.ts';
import type { Clock } from '#shared/clock.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { type Environment, variableOf } from '#shared/config/secret-ref.ts';

const PROBE_TIMEOUT_MS = 3_000;

/** Opens and closes a session with each tool server. @returns a sentence for each failure, with what to do; never rejects */
export async function probeToolServers(bundle: Bundle, { environment, clock }: { environment: Environment; clock: Clock }): Promise<string[]> {
  const { mcps } = bundle.body.manifest.agent_config;
  if (mcps.length === 0) return [];
  const servers = new ToolServers({ environment, clock });
  const over = new AbortController();
  const limit = delay(PROBE_TIMEOUT_MS, 'late' as const, { signal: over.signal }).catch(() => 'late' as const);
  const lines = await Promise.all(
    mcps.map(async (mcp, index) => {
      const trial = servers.of(bundle, mcp.id)?.connected(async () => null, { isProbe: true });
      const failure = await Promise.race([trial?.catch((error: unknown) => error) ?? null, limit]);
      return failure === null ? [] : [sentenceFor(mcp, index, failure)];
    }),
  );
  over.abort();
  // Not awaited: an unresponsive server would not answer the close either.
  servers.close().catch(() => {});
  return lines.flat();
}

type ToolServerConfig = Bundle['body']['manifest']['agent_config']['mcps'][number];

function sentenceFor({ id, hostname, port, path, api_key: key }: ToolServerConfig, index: number, failure: unknown): string {
  const server = `the tool server ${JSON.stringify(id)} at ${hostname}:${port}${path}`;
  const entry = `agent_config.mcps[${index}]`;
  if (failure instanceof ToolFailure && failure.kind === 'auth_failed') {
    const status = failure.status ?? 401;
    return key === null ? `${server} requires a key (${status}): set ${entry}.api_key` : `${server} rejects the key (${status}): correct $${variableOf(key)}`;
  }
  const reason = failure === 'late' ? `no response within ${PROBE_TIMEOUT_MS / 1_000} s` : reasonOf(failure);
  return `${server} is unavailable (${reason}): start it, or correct ${entry}; until it responds the agent runs without its tools`;
}

function reasonOf(failure: unknown): string {
  if (!(failure instanceof ToolFailure)) return failure instanceof Error ? failure.message : String(failure);
  return failure.message.replace(/^the tool server /, 'it ');
}
