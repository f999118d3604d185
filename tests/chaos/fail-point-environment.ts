import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { z } from 'zod';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { openScriptedUpstream, type ScriptedUpstream } from '../upstreams/scripted-upstream.ts';
import { ROUTINE, writeAgentFiles } from './agent-files.ts';
import { type CountingToolsProcess, openCountingToolsProcess } from './counting-tools.ts';
import { type ModelUpstream, openModelUpstream } from './model-upstream.ts';

/** The one tool of a run: the one that may happen once, or the repeatable one. So a worker that has to die after one of them meets no other. */
export type OneTool = 'book' | 'look';

/** A cluster without an effect worker, with its upstreams, tools and receivers. */
export interface FailPointEnvironment {
  cluster: Cluster;
  database: pg.Pool;
  receiver: CallbackReceiver;
  tools: CountingToolsProcess;
  /** The agent's model. */
  model: ModelUpstream;
  /** The provider of clients' streams. */
  upstream: ScriptedUpstream;
  close(): Promise<void>;
}

export const routineOf = (tool: OneTool) => `${tool}-only`;

export async function openFailPointEnvironment(): Promise<FailPointEnvironment> {
  const [receiver, tools, model, upstream] = await Promise.all([
    openCallbackReceiver(),
    openCountingToolsProcess(),
    openModelUpstream(),
    openScriptedUpstream(),
  ]);
  const files = await writeAgentFiles(tools.port, model.baseUrl, upstream.baseUrl('first'));
  await addRoutines(files.MANIFEST);
  const cluster = await startCluster({
    roles: { 'router-gateway': 1, 'agent-gateway': 1, 'actor-host': 1, 'router-worker': 1, 'effect-worker': 0 },
    env: {
      ...files,
      PLATFORM_PUBLIC_KEY: 'pk-points',
      PLATFORM_SECRET_KEY: 'sk-points',
      LOG_LEVEL: 'warn',
      COALESCE_MS: '50',
      OUTBOUND_ALLOW_HOSTS: receiver.host,
      SHUTDOWN_DRAIN_TIMEOUT_SECONDS: '20',
    },
  });
  const database = new pg.Pool({ connectionString: cluster.postgres.url, max: 4 });
  // After a failed case the server ends first. A query in flight then fails by itself.
  database.on('error', () => {});
  return {
    cluster,
    database,
    receiver,
    tools,
    model,
    upstream,
    close: async () => {
      await database.end();
      await cluster.stop();
      await Promise.all([receiver.close(), tools.close(), model.close(), upstream.close()]);
    },
  };
}

const manifestFile = z.looseObject({ agent_config: z.looseObject({ context: z.looseObject({ routines: z.array(z.unknown()) }) }) });

/** Adds to the routine with both tools one for each tool alone. */
async function addRoutines(manifestPath: string): Promise<void> {
  const folder = join(dirname(manifestPath), 'documents', 'routines');
  const both = z.looseObject({}).parse(JSON.parse(await readFile(join(folder, `${ROUTINE}.yaml`), 'utf8')));
  const manifest = manifestFile.parse(JSON.parse(await readFile(manifestPath, 'utf8')));
  for (const tool of ['book', 'look'] as const) {
    const id = routineOf(tool);
    await writeFile(join(folder, `${id}.yaml`), JSON.stringify({ ...both, id, tools: [`ledger:${tool}`] }));
    manifest.agent_config.context.routines.push({ id, version: 1 });
  }
  await writeFile(manifestPath, JSON.stringify(manifest));
}
