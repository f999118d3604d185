import { agentClient } from './agent-client.mjs';

/**
 * Takes turns of one session, one after the other.
 *
 * @param {{ server: import('./agent-client.mjs').AgentServer, turns: number, databaseUrl: string }} of
 * @returns {Promise<number>} bytes of the session's snapshot, the most that were seen in the last turn
 */
export async function snapshotBytesIn({ server, turns, databaseUrl }) {
  const { openPostgres, silentLog } = await modules();
  const database = await openPostgres({ url: databaseUrl, applicationName: 'bench', log: silentLog });
  const client = agentClient(server);
  try {
    const sessionId = await client.createSession();
    for (let turn = 1; turn < turns; turn += 1) await client.takeTurn(sessionId);
    let isOver = false;
    const last = client.takeTurn(sessionId).finally(() => {
      isOver = true;
    });
    let most = 0;
    while (!isOver) {
      const { rows } = await database.query('select octet_length(snapshot::text) as bytes from sessions where id = $1', [sessionId]);
      most = Math.max(most, Number(/** @type {{ bytes: number }[]} */ (rows)[0]?.bytes ?? 0));
    }
    await last;
    return most;
  } finally {
    client.leave();
    await database.close();
  }
}

async function modules() {
  const dist = (/** @type {string} */ path) => new URL(`../../dist/shared/${path}`, import.meta.url).href;
  /** @type {typeof import('../../shared/storage/postgres/open-postgres.ts')} */
  const { openPostgres } = await import(dist('storage/postgres/open-postgres.js'));
  /** @type {typeof import('../../shared/telemetry/log.ts')} */
  const { silentLog } = await import(dist('telemetry/log.js'));
  return { openPostgres, silentLog };
}
