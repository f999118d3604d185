import type { SessionCommand } from '#bus/messages/session.ts';
import type { RunCallOutcome } from '#shared/contracts/agent/run.ts';
import type { RunResult } from './types.ts';

const nothing = { reason: null, model: null, provider: null, usage: null };

/** Outcome of a superseded call. */
export const superseded: RunCallOutcome = { type: 'abandoned', ...nothing };

/**
 * How a call of a run ended, without its content.
 *
 * @param command the command behind the event; it alone names the model
 */
export function outcomeOf(event: RunResult, command: SessionCommand): RunCallOutcome {
  switch (event.type) {
    case 'call.replied':
      return { type: event.reply.type, ...answeredBy(command), reason: event.reply.type === 'unusable' ? event.reply.finishReason : null };
    case 'call.failed':
      return { ...nothing, type: 'failed', reason: event.failure.code };
    case 'tool.settled': {
      const { outcome } = event;
      return { ...nothing, type: outcome.type === 'failed' ? outcome.reason : outcome.isError ? 'error' : 'result' };
    }
    case 'tools.listed': {
      const lost = Object.entries(event.unavailable).map(([server, reason]) => `${server}: ${reason}`);
      return lost.length === 0 ? { ...nothing, type: 'listed' } : { ...nothing, type: 'unavailable', reason: lost.join(', ') };
    }
  }
}

function answeredBy(command: SessionCommand): Pick<RunCallOutcome, 'model' | 'provider' | 'usage'> {
  if (command.type !== 'call.completed') return nothing;
  const { model, provider, usage } = command;
  return { model, provider, usage: usage === null ? null : { prompt_tokens: usage.promptTokens, completion_tokens: usage.completionTokens } };
}
