import { z } from 'zod';

const unsupported = (what: string) => ({ error: `must be an object with the type of a supported ${what}` });

const text = z.string();
const optionalText = z.string().nullish();

/** Of any message; which of them a role may have is checked where messages are made. */
const contentPart = z.discriminatedUnion(
  'type',
  [
    z.looseObject({ type: z.enum(['input_text', 'output_text', 'text']), text }),
    z.looseObject({ type: z.literal('refusal'), refusal: text }),
    z.looseObject({
      type: z.literal('input_image'),
      image_url: optionalText,
      file_id: optionalText,
      detail: z.enum(['auto', 'low', 'high', 'original']).nullish(),
    }),
    z.looseObject({ type: z.literal('input_file'), filename: optionalText, file_data: optionalText, file_url: optionalText, file_id: optionalText }),
    z.looseObject({ type: z.literal('input_audio'), input_audio: z.looseObject({ data: text, format: text }) }),
    z.looseObject({ type: z.literal('input_video'), video_url: text }),
  ],
  unsupported('content part'),
);
const content = z.union([z.string(), z.array(contentPart)]);

/** An item of `input`. Items of an earlier response are sent back as they came. */
export const inputItem = z.discriminatedUnion(
  'type',
  [
    z.looseObject({ type: z.literal('message').optional(), role: z.enum(['user', 'assistant', 'system', 'developer']), content }),
    z.looseObject({ type: z.literal('function_call'), call_id: text, name: z.string().min(1), arguments: text }),
    z.looseObject({ type: z.literal('function_call_output'), call_id: text, output: content }),
    z.looseObject({
      type: z.literal('reasoning'),
      id: optionalText,
      summary: z.array(z.looseObject({ type: z.literal('summary_text'), text })).nullish(),
      content: z.array(z.looseObject({ type: z.literal('reasoning_text'), text })).nullish(),
      encrypted_content: optionalText,
      signature: optionalText,
      format: optionalText,
    }),
    // What the service did by itself: models are not sent it.
    z.looseObject({ type: z.enum(['web_search_call', 'image_generation_call']) }),
    z.looseObject({ type: z.literal('item_reference') }),
  ],
  unsupported('item'),
);

export type InputItem = z.infer<typeof inputItem>;
export type InputPart = z.infer<typeof contentPart>;
export type InputMessage = Extract<InputItem, { role: string }>;
export type ReasoningInput = Extract<InputItem, { encrypted_content?: unknown }>;
