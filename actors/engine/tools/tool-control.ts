import { z } from 'zod';
import { cleanText } from '#shared/clean-text.ts';

/** In `_meta` of a tool's result. */
const KEY = 'switchyard/control';
const MAX_POLICIES = 16;
const MAX_TEXT_CHARS = 2_000;

const policyText = z.string().min(1).max(MAX_TEXT_CHARS).transform(cleanText);
const transientPolicy = z.object({ condition: policyText.nullable().default(null), action: policyText });

/** What a tool's result asks of the turn. */
export const toolControl = z.object({
  /** Of the session, from the end of this turn; null: as it is. */
  mode: z.enum(['auto', 'manual']).nullable(),
  /** `response`: the result is used for this reply and never stands in the session's log. */
  lifespan: z.enum(['session', 'response']),
  /** Hold for this reply. */
  policies: z.array(transientPolicy),
});
export type ToolControl = z.infer<typeof toolControl>;

/** What is not asked, not known or not well formed has no effect; each field by itself. */
const asked = z
  .looseObject({
    mode: toolControl.shape.mode.catch(null).default(null),
    lifespan: toolControl.shape.lifespan.catch('session').default('session'),
    policies: z.array(z.unknown()).catch([]).default([]),
  })
  .catch({ mode: null, lifespan: 'session', policies: [] });

/**
 * @param metadata `_meta` of the result
 * @param isTrusted by the manifest's entry of the server: only then are its policies taken
 */
export function controlOf(metadata: Record<string, unknown>, isTrusted: boolean): ToolControl {
  const { mode, lifespan, policies } = asked.parse(metadata[KEY] ?? {});
  const usable = isTrusted ? policies.slice(0, MAX_POLICIES).flatMap((one) => transientPolicy.safeParse(one).data ?? []) : [];
  return { mode, lifespan, policies: usable };
}
