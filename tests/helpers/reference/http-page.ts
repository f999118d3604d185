import { z } from 'zod';
import { type CommentedLiteral, commentOf } from './doc-comments.ts';
import { type ShownSchema, schemaTables, typeOf } from './schema-tables.ts';

const schema = z.custom<ShownSchema>((value) => typeof value === 'object' && value !== null);
const content = z.record(z.string(), z.object({ schema: schema.optional() })).default({});

const operation = z.object({
  summary: z.string(),
  parameters: z.array(z.object({ name: z.string(), in: z.string(), required: z.boolean().default(false), schema })).default([]),
  requestBody: z.object({ content }).optional(),
  security: z.array(z.unknown()).optional(),
  responses: z.record(z.string(), z.object({ description: z.string().default(''), content })),
});
type Operation = z.infer<typeof operation>;

const description = z.object({
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.object({ schemas: z.record(z.string(), schema).default({}) }).prefault({}),
});

/** The operations and shapes of an OpenAPI description, as Markdown. @throws a ZodError for what is no such description */
export function httpPage(document: unknown, literals: readonly CommentedLiteral[], accessOf: (operation: string) => string = () => ''): string {
  const { paths, components } = description.parse(document);
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, found]) =>
      operationText(`${method.toUpperCase()} ${path}`, found, literals, accessOf(`${method.toUpperCase()} ${path}`)),
    ),
  );
  const shapes = Object.entries(components.schemas).map(([name, shape]) => shapeText(name, shape, literals));
  return `${operations.join('\n\n')}\n\n## Shapes\n\n${shapes.join('\n\n')}\n`;
}

function operationText(
  name: string,
  { summary, parameters, requestBody, security, responses }: Operation,
  literals: readonly CommentedLiteral[],
  given: string,
): string {
  const access = security?.length === 0 ? 'Needs no key.' : given;
  const texts = [`## ${name}`, `${summary}. ${access}`.trim()];
  if (parameters.length > 0) {
    const names = new Set(parameters.map((parameter) => parameter.name));
    const rows = parameters.map(({ name: parameter, in: place, required, schema: shape }) => {
      const meaning = shape.description ?? commentOf(parameter, names, literals) ?? '';
      return `| \`${parameter}\` | ${place} | ${escapedCell(typeOf(shape))} | ${required ? 'required' : defaultOf(shape)} | ${escapedCell(meaning)} |`;
    });
    texts.push(`| Parameter | In | Type | Default | Meaning |\n|---|---|---|---|---|\n${rows.join('\n')}`);
  }
  for (const [media, { schema: body }] of Object.entries(requestBody?.content ?? {})) {
    if (body === undefined) texts.push(`Request: \`${media}\`.`);
    else texts.push(schemaTables(body, `Request, \`${media}\``, literals) || `Request, \`${media}\`: ${typeOf(body)}.`);
  }
  texts.push(`| Status | Answer |\n|---|---|\n${responseLines(responses).join('\n')}`);
  return texts.join('\n\n');
}

/** Under its name, to which operations link. */
function shapeText(name: string, shape: ShownSchema, literals: readonly CommentedLiteral[]): string {
  const heading = `### ${name}\n\n`;
  const tables = schemaTables(shape, name, literals);
  return tables.startsWith(heading) ? tables : `${heading}${tables || `${typeOf(shape)}.`}`;
}

/** Statuses with the same answer share a line. */
function responseLines(responses: Operation['responses']): string[] {
  const statusesOf = new Map<string, string[]>();
  for (const [status, response] of Object.entries(responses)) {
    const answer = answerOf(response);
    statusesOf.set(answer, [...(statusesOf.get(answer) ?? []), status]);
  }
  return [...statusesOf].map(([answer, statuses]) => `| ${statuses.join(', ')} | ${answer} |`);
}

function answerOf({ content: bodies }: Operation['responses'][string]): string {
  const forms = Object.entries(bodies).map(([media, { schema: body }]) => (body === undefined || !media.endsWith('json') ? `\`${media}\`` : bodyName(body)));
  return forms.length === 0 ? 'no body' : escapedCell(forms.join(', or '));
}

/** Its name, or its fields. */
function bodyName(body: ShownSchema): string {
  if (body.type !== 'object' || body.properties === undefined) return typeOf(body);
  return `object with ${Object.entries(body.properties)
    .map(
      ([field, { type, items, $ref }]) =>
        `\`${field}\`${$ref === undefined ? '' : ` (${typeOf({ $ref })})`}${type === 'array' && items?.$ref !== undefined ? ` (list of ${typeOf(items)})` : ''}`,
    )
    .join(', ')}`;
}

function defaultOf({ default: value }: ShownSchema): string {
  return value === undefined ? '' : `\`${JSON.stringify(value)}\``;
}

function escapedCell(text: string): string {
  return text.replaceAll('|', '\\|');
}
