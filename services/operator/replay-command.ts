import type { Clock } from '#shared/clock.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Models, openModels } from './conversation/open-models.ts';
import { unaskedModel } from './conversation/unasked-model.ts';
import { loadAgent } from './load-agent.ts';
import { readSession } from './replay/recorded-session.ts';
import { replaySession } from './replay/replay-session.ts';
import { replayJson, replayLines } from './replay/report.ts';

interface ReplayOptions {
  sessionId: string;
  manifest: string;
  /** Null: `documents` beside the manifest. */
  documents: string | null;
  fromOffset: number;
  json: boolean;
}

interface ReplayDeps {
  openDatabase(): Promise<Database>;
  environment: Environment;
  print(line: string): void;
  clock: Clock;
  log: Log;
}

/**
 * Plays the messages of a session's customer with other documents, and prints what is decided otherwise. Models are opened with the first call that has no
 * recorded answer.
 * @throws `config.invalid`, `session.not_found`, `request.invalid` for an offset behind the last turn
 */
export async function replayCommand({ sessionId, manifest, documents, fromOffset, json }: ReplayOptions, deps: ReplayDeps): Promise<void> {
  const { openDatabase, environment, print, clock, log } = deps;
  const { bundle, ofAgent } = await loadAgent({ manifest, documents }, environment);
  const database = await openDatabase();
  const session = await readSession(database, sessionId);
  let opened: Promise<Models> | null = null;
  const models = {
    execute: async (call: Parameters<Models['calls']['execute']>[0]) => {
      opened ??= openModels(bundle.body.manifest, manifest, { environment: ofAgent, log });
      return (await opened).calls.execute(call);
    },
  };
  const isOpened = () => opened;
  try {
    const replay = await replaySession({ sessionId, session, fromOffset, bundle, models, database, clock, log });
    const answering = { answeredBy: (await isOpened())?.answeredBy ?? null, unaskedModel: unaskedModel(bundle.body.manifest) };
    if (json) print(JSON.stringify(replayJson(replay, sessionId, answering), null, 2));
    else for (const line of replayLines(replay, answering)) print(line);
  } finally {
    await (await isOpened()?.catch(() => null))?.calls.close();
  }
}
