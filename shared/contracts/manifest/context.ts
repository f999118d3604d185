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

export const entailment = z.strictObject({ when: entityReference, also_apply: z.array(entityReference).min(1) });

/** The agent's documents, by id and version, and the relationships between them. */
export const context = z.strictObject({
  system_prompt: documentReference,
  /** `match_user`, or a language or instruction that is passed to the model verbatim. */
  language: z.string().min(1),
  /** First message of a session; null: the customer writes first. `${macro-id}` is expanded. */
  greeting: z.string().min(1).nullable().default(null),
  /** Short messages while the reply is in progress; null: none. */
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
  /** Tools after which policies are matched again, on success and on failure. */
  reevaluation_tools: z
    .array(z.strictObject({ id: toolId }))
    .superRefine(refuseRepeats(({ id }) => id, ['id']))
    .default([]),
  relationships: z
    .strictObject({ priorities: z.array(priority).default([]), entailments: z.array(entailment).default([]) })
    .nullable()
    .default(null),
});
