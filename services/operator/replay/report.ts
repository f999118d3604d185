import { escapeUnprintable } from '#shared/contracts/printed-name.ts';
import { decisionsJson } from '../conversation/decisions-json.ts';
import type { Replay, ReplayedTurn } from './replay-session.ts';

const MAX_ABOUT_CHARACTERS = 80;

interface Answering {
  /** Null: no model was asked. */
  answeredBy: string | null;
  /** Of vectors; null: the agent has none. */
  unaskedModel: string | null;
}

/** For people: a line for each turn, and what was decided otherwise. */
export function replayLines({ turns, fromRecord, asked, suppressed, unlisted }: Replay, { answeredBy, unaskedModel }: Answering): string[] {
  const differing = turns.filter(({ differences }) => differences.length > 0).length;
  const summary = [
    `${counted(turns.length, 'turn')}: ${turns.length - differing} decided alike, ${differing} otherwise.`,
    `From the record: ${counted(fromRecord.modelCalls, 'model call')} and ${counted(fromRecord.toolCalls, 'tool call')}.`,
    answeredBy === null ? 'No model was asked.' : `Asked anew: ${counted(asked, 'model call')}, answered by ${answeredBy}.`,
    ...(unaskedModel === null ? [] : [`${unaskedModel} was not asked: where no vector is recorded, shared words decide what is alike.`]),
    ...suppressed.map((call) => `Not called, and without a recorded result: ${call}`),
    ...unlisted.map((server) => `Without tools: the session has no list of those of ${server}.`),
  ];
  return [...turns.flatMap(turnLines), '', ...summary].map(escapeUnprintable);
}

function turnLines({ offset, about, differences }: ReplayedTurn): string[] {
  const head = `offset ${offset}, ${JSON.stringify(about.length > MAX_ABOUT_CHARACTERS ? `${about.slice(0, MAX_ABOUT_CHARACTERS)}…` : about)}`;
  if (differences.length === 0) return [`alike      ${head}`];
  const lines = differences.flatMap(({ recorded, replayed }) => [
    ...(recorded === null ? [] : [`    - ${recorded}`]),
    ...(replayed === null ? [] : [`    + ${replayed}`]),
  ]);
  return [`OTHERWISE  ${head}: - recorded, + replayed`, ...lines];
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

export function replayJson({ turns, fromRecord, asked, suppressed, unlisted }: Replay, sessionId: string, { answeredBy, unaskedModel }: Answering): object {
  return {
    session_id: sessionId,
    differing: turns.filter(({ differences }) => differences.length > 0).length,
    recorded_answers: { model_calls: fromRecord.modelCalls, tool_calls: fromRecord.toolCalls },
    asked: { model_calls: asked, answered_by: answeredBy },
    not_asked: unaskedModel,
    suppressed_tool_calls: suppressed,
    servers_without_tools: unlisted,
    turns: turns.map(({ offset, about, differences, recorded, replayed }) => ({
      ...{ offset, about, differences },
      ...{ recorded: decisionsJson(recorded), replayed: decisionsJson(replayed) },
    })),
  };
}
