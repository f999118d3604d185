import { z } from 'zod';
import { documentHeader, documentId, entityReference, toolId } from './document.ts';

/** A rule of behaviour: while the condition holds, the agent does the action and may use the tools. */
export const policy = z
  .strictObject({
    ...documentHeader,
    /** null: the policy always holds. */
    condition: z.string().min(1).nullable().default(null),
    /** null: the policy only observes its condition, for relationships and tools that build on it. */
    action: z.string().min(1).nullable().default(null),
    tools: z.array(toolId).default([]),
    criticality: z.enum(['low', 'medium', 'high']).default('medium'),
    /** Whether it applies again after it was applied once; null: determined at boot. */
    continuous: z.boolean().nullable().default(null),
    /** Whether its application is recorded. */
    track: z.boolean().default(true),
    priority: z.number().int().default(0),
    enabled: z.boolean().default(true),
    /** Its routines: it is active only while one of them is. Empty: it is always matched. */
    routines: z.array(documentId).default([]),
    /** Inactive while one of these is not active. */
    depends_on: z.array(entityReference).default([]),
    /** Alternatives that the customer may mean when the condition holds: the agent asks which. */
    disambiguates: z
      .array(entityReference)
      .refine((references) => references.length !== 1, 'must name at least 2, or none')
      .default([]),
  })
  .refine(({ condition, action }) => condition !== null || action !== null, { path: ['action'], message: 'must be given when there is no condition' });
export type Policy = z.infer<typeof policy>;
