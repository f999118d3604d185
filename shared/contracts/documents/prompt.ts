import { z } from 'zod';
import { documentHeader } from './document.ts';

/** A text for the model. `{{agent.name}}`, `{{agent.id}}` and `{{now}}` are replaced; other placeholders stay. A customer's name comes beside it, as data. */
export const prompt = z.strictObject({
  ...documentHeader,
  type: z.literal('text').default('text'),
  text: z.string().min(1),
});
export type Prompt = z.infer<typeof prompt>;
