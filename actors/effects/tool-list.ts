import { z } from 'zod';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { ToolWork } from '#bus/messages/tool.ts';
import type { RunScope } from '../kinds/run/run-scope.ts';
import type { RunActions, RunEventBody } from '../kinds/run/types.ts';
import { commonInputs, type EffectKind } from './effect-kind.ts';

const inputs = z.object({ ...commonInputs, bundleHash: z.string(), servers: z.array(z.string()).readonly() });

type Request = Extract<RunActions['effect'], { kind: 'tool-list' }>;

/** The tool lists of a run's servers. */
export const toolList: EffectKind<z.infer<typeof inputs>, Request, RunScope, RunEventBody> = {
  name: 'tool-list',
  actor: 'run',
  request: 'tool-list',
  work: 'tool',
  inputs,
  inputsOf: ({ deadlineAtMs, servers }, { bundleHash, traceparent }) => ({ bundleHash, deadlineAtMs, traceparent, servers }),
  render({ id: effectId, sessionId, actorId, createdAtMs, inputs: given }, republished): ToolWork {
    const { bundleHash, deadlineAtMs, servers, traceparent } = given;
    return {
      v: 1,
      type: 'list',
      effectId,
      sessionId,
      ...actorFields(actorId),
      bundleHash,
      deadlineAtMs,
      createdAtMs,
      republished,
      traceparent,
      servers: [...servers],
    };
  },
  results: {
    'tools.listed': ({ type, callId, lists, unavailable, timedOut }, scope) => ({
      ...{ type, callId, lists, unavailable, timedOut: timedOut ?? false },
      missingTool: scope.missingTool(lists),
    }),
  },
  overdue({ callId }, { servers }) {
    const unavailable = Object.fromEntries(servers.map((server) => [server, 'unreachable' as const]));
    return { type: 'tools.listed', callId, lists: {}, unavailable, timedOut: true };
  },
};
