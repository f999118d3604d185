import { z } from 'zod';

/** Of one page; more is refused. */
const MAX_PAGE = 1_000;
const DEFAULT_PAGE = 500;
const MAX_SEARCH_CHARACTERS = 200;

/** Orders of GET /models. Those of scores and of popularity, which this router does not have, leave the order as it is. */
const SORTS = [
  'pricing-low-to-high',
  'pricing-high-to-low',
  'context-high-to-low',
  'throughput-high-to-low',
  'latency-low-to-high',
  'newest',
  'most-popular',
  'top-weekly',
  'intelligence-high-to-low',
  'coding-high-to-low',
  'agentic-high-to-low',
  'design-arena-elo-high-to-low',
] as const;

/** Clients send an empty text for what is not given. */
const given = <Schema extends z.ZodType>(schema: Schema) => z.preprocess((value) => (value === '' ? undefined : value), schema.optional());
const text = given(z.string().max(MAX_SEARCH_CHARACTERS));
/** Separated by commas; null: not given. */
const list = z.preprocess(
  (value) => (value === '' ? undefined : value),
  z
    .string()
    .transform((value) => value.split(',').flatMap((entry) => entry.trim().toLowerCase() || []))
    .nullable()
    .default(null),
);
const number = given(
  z
    .string()
    .regex(/^-?\d{1,12}(\.\d{1,12})?$/, 'must be a number')
    .transform(Number),
);
/** Of scores, which this router has of no model: to ignore the filter would list models that do not pass it. */
const unknownScore = given(z.string().refine(() => false, 'must not be given: this router has no scores of models'));
const count = given(
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number of at least 0')
    .transform(Number),
);
const limit = count.pipe(z.number().min(1).max(MAX_PAGE).optional());

/** Both absent: the whole list. */
const page = {
  /** Models to leave out at the beginning. */
  offset: count,
  /** Models of a page. Without this and `offset`: all. */
  limit,
};

/** Query of GET /models. An absent field does not filter, and unknown fields are ignored. */
export const modelQuery = z.object({
  ...page,
  /** Only models whose id or name has this text. */
  q: text,
  sort: given(z.enum(SORTS)),
  category: text,
  /** Only models that support all of these, comma-separated. */
  supported_parameters: list,
  /** Only models that take all of these, comma-separated, such as `text,image`. */
  input_modalities: list,
  /** Only models whose answers have one of these, comma-separated. Absent, and `all`: any. */
  output_modalities: list,
  /** Only models with at least this context length, in tokens. */
  context: count,
  /** Of the prompt, in US dollars per million tokens. */
  min_price: number,
  /** Of the prompt, in US dollars per million tokens. */
  max_price: number,
  /** Of the answer, in US dollars per million tokens. */
  min_output_price: number,
  /** Of the answer, in US dollars per million tokens. */
  max_output_price: number,
  arch: text,
  model_authors: list,
  providers: list,
  distillable: given(z.enum(['true', 'false'])),
  zdr: given(z.enum(['true', 'false'])),
  region: text,
  min_age_days: number,
  max_age_days: number,
  min_intelligence_index: unknownScore,
  max_intelligence_index: unknownScore,
  min_coding_index: unknownScore,
  max_coding_index: unknownScore,
  min_agentic_index: unknownScore,
  max_agentic_index: unknownScore,
  min_tool_success_rate: unknownScore,
  max_tool_success_rate: unknownScore,
});
export type ModelQuery = z.infer<typeof modelQuery>;

/** Of GET /models/user, /models/count and /embeddings/models. */
export const listQuery = modelQuery.pick({ offset: true, limit: true, output_modalities: true });

/** From the first entry, and how many; null: the whole list. */
export function pageOf({ offset, limit: most }: Pick<Partial<ModelQuery>, 'offset' | 'limit'>): { offset: number; limit: number } | null {
  return offset === undefined && most === undefined ? null : { offset: offset ?? 0, limit: most ?? DEFAULT_PAGE };
}
