import { z } from 'zod';

const callId = z.string().optional();
const part = z
  .strictObject({
    text: z.string().optional(),
    inlineData: z.strictObject({ mimeType: z.string(), data: z.string() }).optional(),
    fileData: z.strictObject({ fileUri: z.string(), mimeType: z.string().optional() }).optional(),
    functionCall: z.strictObject({ id: callId, name: z.string(), args: z.record(z.string(), z.unknown()) }).optional(),
    functionResponse: z.strictObject({ id: callId, name: z.string(), response: z.record(z.string(), z.unknown()) }).optional(),
    thoughtSignature: z.string().optional(),
  })
  .refine(({ thoughtSignature: _, ...data }) => Object.keys(data).length === 1, 'required oneof field data must have one initialized field');
const content = z.strictObject({ role: z.enum(['user', 'model']), parts: z.array(part).min(1) });
const declaration = z.strictObject({
  name: z.string(),
  description: z.string().optional(),
  parametersJsonSchema: z.record(z.string(), z.unknown()).optional(),
});

/** The fields of a request that the API takes (npm @google/genai 2.32.0, GenerateContentParameters and what its client sends of it). */
export const generateRequest = z.strictObject({
  systemInstruction: z.strictObject({ role: z.string().optional(), parts: z.array(part).min(1) }).optional(),
  contents: z.array(content).min(1),
  generationConfig: z
    .strictObject({
      maxOutputTokens: z.number().int().min(1),
      temperature: z.number().min(0).max(2),
      topP: z.number().min(0).max(1),
      topK: z.number().int(),
      stopSequences: z.array(z.string().min(1)).min(1).max(5),
      seed: z.number().int(),
      presencePenalty: z.number().min(-2).max(2),
      frequencyPenalty: z.number().min(-2).max(2),
      responseLogprobs: z.boolean(),
      logprobs: z.number().int(),
      responseMimeType: z.literal('application/json'),
      responseJsonSchema: z.record(z.string(), z.unknown()),
      responseModalities: z.array(z.enum(['TEXT', 'IMAGE', 'AUDIO'])),
      thinkingConfig: z.strictObject({
        includeThoughts: z.boolean(),
        thinkingBudget: z.number().int().min(-1).max(32_768).optional(),
        thinkingLevel: z.enum(['MINIMAL', 'LOW', 'MEDIUM', 'HIGH']).optional(),
      }),
    })
    .partial()
    .optional(),
  tools: z.array(z.strictObject({ functionDeclarations: z.array(declaration).min(1) })).optional(),
  toolConfig: z
    .strictObject({
      functionCallingConfig: z.strictObject({ mode: z.enum(['AUTO', 'ANY', 'NONE', 'VALIDATED']), allowedFunctionNames: z.array(z.string()).optional() }),
    })
    .optional(),
  safetySettings: z.array(z.strictObject({ category: z.string(), threshold: z.enum(['OFF', 'BLOCK_NONE', 'BLOCK_ONLY_HIGH']) })).optional(),
});

type GenerateRequest = z.infer<typeof generateRequest>;
type Content = GenerateRequest['contents'][number];

/** Why the API would refuse a request, as it documents; null: it would not. @param path has the model's name */
export function refusalOf(body: unknown, path: string): string | null {
  const parsed = generateRequest.safeParse(body);
  if (!parsed.success) return z.prettifyError(parsed.error);
  const { contents } = parsed.data;
  if (contents[0]?.role !== 'user') return 'Please ensure that the conversation begins with a user turn.';
  const unanswered = contents.some((one, index) => callsIn(one) > 0 && callsIn(one) !== resultsIn(contents[index + 1]));
  if (unanswered) return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';
  if (/gemini-3/.test(path) && contents.some((one) => callsIn(one) > 0 && !isSigned(one)))
    return 'Function call is missing a thought_signature in functionCall parts.';
  return null;
}

function callsIn({ parts }: Content): number {
  return parts.filter(({ functionCall }) => functionCall !== undefined).length;
}

function resultsIn(next: Content | undefined): number {
  return next?.parts.filter(({ functionResponse }) => functionResponse !== undefined).length ?? 0;
}

function isSigned({ parts }: Content): boolean {
  return parts.find(({ functionCall }) => functionCall !== undefined)?.thoughtSignature !== undefined;
}
