import { z } from 'zod';
import { documentReference, entityReference, toolId } from '../documents/document.ts';
import { refuseRepeats } from '../documents/refuse-repeats.ts';

const references = z
  .array(documentReference)
  .superRefine(refuseRepeats(({ id }) => id, ['id']))
  .default([]);

/** `higher` displaces `over`, or every routine. */
export const priority = z
  .strictObject({
    higher: entityReference,
    over: entityReference.nullable().default(null),
    over_all_routines: z.boolean().default(false),
  })
  .refine(({ over, over_all_routines: overAll }) => (over !== null) !== overAll, {
    path: ['over'],
    message: 'must be given, or else over_all_routines: true: exactly one of the two',
  });

/** When `when` applies, the others apply too. */
export const entailment = z.strictObject({ when: entityReference, also_apply: z.array(entityReference).min(1) });

/** What the agent is told: its documents, by id and version, and how they stand to each other. */
export const context = z.strictObject({
  system_prompt: documentReference,
  /** `match_user`, or the name of a language or an instruction, passed to the model word for word. */
  language: z.string().min(1),
  /** The first message of a session; null: the customer speaks first. `${macro-id}` is expanded. */
  greeting: z.string().min(1).nullable().default(null),
  /** Short messages while the customer waits for the answer; null: none. */
  preamble: z
    .strictObject({
      examples: z.array(z.string().min(1)).min(1),
      /** Whether each batch of tool calls is announced. */
      announce_tools: z.boolean().default(false),
    })
    .nullable()
    .default(null),
  routines: references,
  policies: references,
  glossaries: references,
  macros: references,
  /** Variable sets. */
  variables: references,
  /** Tools after which, whether they succeed or fail, policies are matched again. */
  reevaluation_tools: z
    .array(z.strictObject({ id: toolId }))
    .superRefine(refuseRepeats(({ id }) => id, ['id']))
    .default([]),
  relationships: z
    .strictObject({ priorities: z.array(priority).default([]), entailments: z.array(entailment).default([]) })
    .nullable()
    .default(null),
});
