import { z } from 'zod';
import { contentItem } from './chat-message.ts';
import { providerPreferences, requestLimits } from './chat-request.ts';

/** Bounds of one request, those that OpenAI has. More texts are more requests. */
export const embeddingLimits = {
  inputs: 2_048,
  /** Of all inputs together: token ids, or else estimated at four characters each. */
  tokens: 300_000,
  /** More than any model has. */
  dimensions: 65_536,
  /** Items of one input. */
  items: 64,
} as const;

const CHARS_PER_TOKEN = 4;
/** Of the largest vocabularies, with some room. */
const MAX_TOKEN_ID = 2_147_483_647;
const KINDS = 'must be a text, a list of texts, a list of token ids, a list of such lists, or a list of objects with content';

const contentInput = z.looseObject({ content: z.array(contentItem).min(1).max(embeddingLimits.items) });
type ContentInput = z.infer<typeof contentInput>;

/** One of a request's inputs; numbers are token ids of the model. */
export type EmbeddingInput = string | number[] | ContentInput;

/**
 * The first fault of an input, so that a list of a hundred thousand wrong values is one issue. Null: none.
 * `path`: below `input`.
 */
interface Fault {
  path: (string | number)[];
  message: string;
}

function faultIn(input: unknown): Fault | null {
  if (typeof input === 'string') return faultOfInput(input, []);
  if (!Array.isArray(input)) return { path: [], message: KINDS };
  if (input.length === 0) return { path: [], message: 'must not be empty' };
  if (typeof input[0] === 'number') return faultOfInput(input, []);
  if (input.length > embeddingLimits.inputs) return { path: [], message: `must have at most ${embeddingLimits.inputs} inputs` };
  const kind = kindOf(input[0]);
  for (const [index, one] of input.entries()) {
    if (kindOf(one) !== kind) return { path: [index], message: index === 0 ? KINDS : 'must be of the same kind as the first input' };
    const fault = faultOfInput(one, [index]);
    if (fault !== null) return fault;
  }
  return null;
}

type Kind = 'text' | 'tokens' | 'content' | null;

function kindOf(input: unknown): Kind {
  if (typeof input === 'string') return 'text';
  if (Array.isArray(input)) return 'tokens';
  return typeof input === 'object' && input !== null ? 'content' : null;
}

function faultOfInput(input: unknown, path: Fault['path']): Fault | null {
  if (typeof input === 'string') return input === '' ? { path, message: 'must not be empty' } : null;
  if (Array.isArray(input)) return faultOfTokens(input, path);
  const { error } = contentInput.safeParse(input);
  const [issue] = error?.issues ?? [];
  if (issue === undefined) return faultOfContent(input as ContentInput, path);
  return { path: [...path, ...issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step))], message: `is not valid: ${issue.message}` };
}

function faultOfTokens(tokens: readonly unknown[], path: Fault['path']): Fault | null {
  if (tokens.length === 0) return { path, message: 'must not be empty' };
  const wrong = tokens.findIndex((token) => !(Number.isInteger(token) && Number(token) >= 0 && Number(token) <= MAX_TOKEN_ID));
  return wrong < 0 ? null : { path: [...path, wrong], message: 'must be a token id, an integer of at least 0' };
}

function faultOfContent({ content }: ContentInput, path: Fault['path']): Fault | null {
  const empty = content.findIndex((item) => item.type === 'text' && item.text === '');
  return empty < 0 ? null : { path: [...path, 'content', empty, 'text'], message: 'must not be empty' };
}

const input = z.unknown().transform((value, { addIssue }): string | number[] | EmbeddingInput[] => {
  const fault = faultIn(value) ?? tooLong(value as string | number[] | EmbeddingInput[]);
  if (fault !== null) addIssue({ code: 'custom', ...fault });
  return value as string | number[] | EmbeddingInput[];
});

function tooLong(value: string | number[] | EmbeddingInput[]): Fault | null {
  const tokens = inputsIn(value).reduce((sum: number, one) => sum + tokensIn(one), 0);
  if (tokens <= embeddingLimits.tokens) return null;
  return {
    path: [],
    message: `must have at most ${embeddingLimits.tokens} tokens, estimated at ${CHARS_PER_TOKEN} characters each: send fewer inputs at once`,
  };
}

function tokensIn(one: EmbeddingInput): number {
  if (typeof one === 'string') return Math.ceil(one.length / CHARS_PER_TOKEN);
  if (Array.isArray(one)) return one.length;
  return one.content.reduce((sum, item) => sum + (item.type === 'text' ? Math.ceil(item.text.length / CHARS_PER_TOKEN) : 0), 0);
}

/** Each input by itself, in order. */
export function inputsIn(given: string | number[] | EmbeddingInput[]): EmbeddingInput[] {
  if (typeof given === 'string') return [given];
  return isTokens(given) ? [given] : given;
}

function isTokens(given: number[] | EmbeddingInput[]): given is number[] {
  return typeof given[0] === 'number';
}

/** Body of POST /api/v1/embeddings. Unknown fields are accepted and ignored: clients may be newer. */
export const embeddingRequest = z.looseObject({
  /** There is no default: vectors of two models can't be compared. */
  model: z.string().min(1),
  input,
  encoding_format: z.enum(['float', 'base64']).nullish(),
  /** Of the vectors; of models that can shorten them. */
  dimensions: z.number().int().min(1).max(embeddingLimits.dimensions).nullish(),
  /** What the vectors are for, in the vendor's words, such as `search_query`. */
  input_type: z.string().min(1).max(64).nullish(),
  user: z.string().nullish(),
  provider: providerPreferences.nullish(),
  /** Of a chat's plugins `moderation` alone is applied; all others are ignored, whatever they have. */
  plugins: z
    .array(z.looseObject({ id: z.string() }))
    .max(requestLimits.plugins)
    .nullish(),
  session_id: z.string().max(128).optional(),
  metadata: z.record(z.string(), z.string()).optional(),
});

export type EmbeddingRequest = z.infer<typeof embeddingRequest>;
