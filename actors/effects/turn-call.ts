import { z } from 'zod';
import type { RouterCall } from '#bus/messages/router.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { type Failure, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { composeReply } from '../kinds/turn/steps/compose-reply.ts';
import type { TurnActions, TurnEventBody } from '../kinds/turn/types.ts';
import { actorCall } from './actor-call.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';

const inputs = z.object({
  ...commonInputs,
  /** Of the release before too: without injected tool results both give the same bytes. */
  template: z.enum(['compose@1', composeReply.template]),
  bundleHash: z.string(),
  /** Offset of the conversation's last event. */
  upToOffset: z.number(),
});

/** A turn's model call, on the conversation so far. */
export const turnCall: EffectKind<z.infer<typeof inputs>, TurnActions['effect'], null, TurnEventBody> = {
  name: 'router-call',
  actor: 'turn',
  request: 'router-call',
  work: 'router.turn',
  inputs,
  inputsOf: ({ deadlineAtMs }, { bundleHash, lastOffset, traceparent }) => ({
    template: composeReply.template,
    bundleHash,
    upToOffset: lastOffset,
    deadlineAtMs,
    traceparent,
  }),
  async render(effect, republished, deps): Promise<RouterCall> {
    const { inputs: given, createdAtMs } = effect;
    const { manifest, documents } = (await deps.bundleOf(given.bundleHash)).body;
    const { context, llms } = manifest.agent_config;
    const reference = context.system_prompt;
    const prompt = documents.prompts.find(({ id, version }) => id === reference.id && version === reference.version);
    if (prompt === undefined) throw new SwitchyardError('config.invalid', `the configuration lacks the prompt ${reference.id} version ${reference.version}`);
    const { messages } = composeReply.render({
      callId: effect.id,
      agent: { id: manifest.id, name: manifest.name },
      systemPrompt: prompt.text,
      language: context.language,
      history: await deps.histories.upTo(given.upToOffset, effect),
      nowMs: createdAtMs,
    });
    const want = deps.settings.streaming ? 'frames' : 'none';
    return actorCall(effect, { republished, want, models: [llms.default, ...llms.fallback], request: { messages } }, deps);
  },
  results: {
    'call.completed': (command) => ({ type: 'call.replied', callId: command.callId, reply: composeReply.read(command) }),
    'call.failed': (command: CommandOf<'call.failed'>) => ({ ...command, failure: command.failure as Failure }),
  },
  overdue: 'report',
};
