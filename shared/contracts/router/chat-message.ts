import { z } from 'zod';

export const cacheControl = z.looseObject({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).optional() });
const textItem = z.looseObject({ type: z.literal('text'), text: z.string(), cache_control: cacheControl.optional() });
/** Some clients list videos without an address; such a request is refused when it would be sent. */
const video = z.looseObject({ url: z.string() }).optional();
export const contentItem = z.discriminatedUnion('type', [
  textItem,
  z.looseObject({
    type: z.literal('image_url'),
    image_url: z.looseObject({ url: z.string(), detail: z.enum(['auto', 'low', 'high', 'original']).optional() }),
  }),
  z.looseObject({ type: z.literal('input_audio'), input_audio: z.looseObject({ data: z.string(), format: z.string() }) }),
  /** The older name of `video_url`. */
  z.looseObject({ type: z.literal('input_video'), video_url: video }),
  z.looseObject({ type: z.literal('video_url'), video_url: video }),
  z.looseObject({
    type: z.literal('file'),
    file: z.looseObject({ filename: z.string().optional(), file_data: z.string().optional(), file_id: z.string().optional() }),
  }),
]);

const textContent = z.union([z.string(), z.array(textItem)]);
const anyContent = z.union([z.string(), z.array(contentItem)]);

const toolCall = z.looseObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});

const ofBlock = { id: z.string().nullish(), index: z.number().int().min(0).nullish(), format: z.string().nullish() };
const knownDetail = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('reasoning.summary'), summary: z.string(), ...ofBlock }),
  z.looseObject({ type: z.literal('reasoning.encrypted'), data: z.string(), ...ofBlock }),
  z.looseObject({ type: z.literal('reasoning.text'), text: z.string().nullish(), signature: z.string().nullish(), ...ofBlock }),
]);
const KNOWN_DETAILS: ReadonlySet<string> = new Set(knownDetail.options.map((option) => option.shape.type.value));
/** Of newer clients. `abort`: otherwise the error of an invalid known detail would name its type. */
const otherDetail = z.looseObject({ type: z.string().refine((type) => !KNOWN_DETAILS.has(type), { abort: true }) });
/** As an answer had them (chat-completion.ts, `ReasoningDetail`). Unknown in types: each adapter reads what its upstream understands. */
const sentBackDetails: z.ZodOptional<z.ZodType<unknown>> = z
  .array(z.union([knownDetail, otherDetail]))
  .nullable()
  .optional();

/** A message of a request, by its role (router-api, "Message"). */
export const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.literal('system'), content: textContent, name: z.string().optional() }),
  z.looseObject({ role: z.literal('developer'), content: textContent, name: z.string().optional() }),
  z.looseObject({ role: z.literal('user'), content: anyContent, name: z.string().optional() }),
  z.looseObject({
    role: z.literal('assistant'),
    content: anyContent.nullish(),
    name: z.string().optional(),
    tool_calls: z.array(toolCall).optional(),
    refusal: z.string().nullish(),
    // What follows is of an earlier answer; an adapter sends it to upstreams that take it back.
    reasoning: z.string().nullish(),
    /** Another name of `reasoning`. */
    reasoning_content: z.string().nullish(),
    reasoning_details: sentBackDetails,
    annotations: z.array(z.looseObject({})).nullish(),
    images: z.array(z.looseObject({})).nullish(),
    audio: z.looseObject({}).nullish(),
  }),
  z.looseObject({ role: z.literal('tool'), content: anyContent, tool_call_id: z.string(), name: z.string().optional() }),
]);
