import { z } from 'zod';
import type { RouterCall } from '#bus/messages/router.ts';
import { moderationModes } from '#bus/messages/session.ts';
import { MODERATION_SURFACE } from '#shared/surfaces/surfaces.ts';
import type { Verdict } from '../engine/moderation/moderation-mark.ts';
import { textsToCheck } from '../engine/moderation/texts-to-check.ts';
import type { SessionActions, SessionEvent } from '../kinds/session/types.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import { actorCall } from './actor-call.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';

const inputs = z.object({
  ...commonInputs,
  /** Offset of the message. */
  upToOffset: z.number(),
  mode: z.enum(moderationModes),
});

const flagged = z.object({ code: z.literal('router.content_policy'), details: z.object({ reasons: z.array(z.string()).catch([]) }) });

/** What a result needs to become an event. */
export interface ModerationScope {
  /** The result as an event of the session, with the message as it is to be stored. */
  settledBy(callId: string, verdict: Verdict): SessionEvent;
}

/** The check of a customer's message: the router's moderation alone, which asks no model of the agent. It reads only, so it may be made again. */
export const moderation: EffectKind<z.infer<typeof inputs>, NonNullable<SessionActions['openCheck']>, ModerationScope, SessionEvent> = {
  name: 'moderation',
  actor: 'session',
  request: 'moderation',
  work: 'router.turn',
  inputs,
  inputsOf: ({ deadlineAtMs, mode }, { lastOffset: upToOffset, traceparent }) => ({ upToOffset, mode, deadlineAtMs, traceparent }),
  async render(effect, republished, deps): Promise<RouterCall> {
    const { upToOffset, mode } = effect.inputs;
    const history = await deps.histories.upTo(upToOffset, effect);
    const event = history.find(({ offset }) => offset === upToOffset);
    if (event?.kind !== 'user_message') throw new Unrenderable('the message is deleted');
    const messages = textsToCheck(mode, event.text, history).map((content) => ({ role: 'user' as const, content }));
    return {
      ...actorCall(effect, { republished, step: { name: 'moderation' }, want: 'none', models: [], request: { messages } }, deps),
      surface: MODERATION_SURFACE,
    };
  },
  results: {
    'call.completed': ({ callId }, { settledBy }) => settledBy(callId, { type: 'passed' }),
    'call.failed': ({ callId, failure }, { settledBy }) => {
      const { data } = flagged.safeParse(failure);
      return settledBy(callId, data === undefined ? { type: 'unavailable' } : { type: 'flagged', tags: data.details.reasons });
    },
  },
  overdue: ({ callId }, { settledBy }) => settledBy(callId, { type: 'unavailable' }),
};
