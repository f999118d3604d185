import { createHash } from 'node:crypto';
import type { FetchRequest } from '#actors/inputs/fetched-values.ts';
import type { Bus } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { TOOL_WORK_VERSION, type ToolWork } from '#bus/messages/tool.ts';
import type { Clock } from '#shared/clock.ts';

/** A value that comes later than prompts wait for it is stored for the next turn. */
const DEADLINE_MS = 10_000;

/** Has an effect worker fetch a value. The queue takes one item for the same stale value within its window of repeats. */
export function requestValue({ bus, clock }: { bus: Bus; clock: Clock }, request: FetchRequest): Promise<unknown> {
  const { turnId, sessionId, bundleHash, customerId, name, type, toolId, writtenAtMs } = request;
  const createdAtMs = clock.nowMs();
  const effectId = `var_${createHash('sha256')
    .update(JSON.stringify([bundleHash, customerId, name, writtenAtMs]))
    .digest('hex')
    .slice(0, 32)}`;
  const item: ToolWork = {
    ...{ v: TOOL_WORK_VERSION, type: 'variable', effectId, sessionId, ...actorFields(turnId), bundleHash },
    ...{ deadlineAtMs: createdAtMs + DEADLINE_MS, createdAtMs, republished: false, traceparent: null },
    ...{ toolId, customerId, name, valueType: type, writtenAtMs },
  };
  return bus.work.publish('tool', effectId, JSON.stringify(item));
}
