import type { z } from 'zod';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Of a field that is not known: its name is any text. */
const MAX_KEY_CHARACTERS = 100;

/** The first invalid field of a request: `param` is its dotted path, such as `messages[0].content`; `""` is the whole body. */
export function offendingField(error: z.ZodError): { param: string; message: string } {
  const [issue] = error.issues;
  if (issue === undefined) return { param: '', message: 'is not accepted' };
  const { issue: inner, path } = innermost(issue, issue.path);
  if (inner.code !== 'unrecognized_keys') return { param: dotted(path), message: inner.message };
  const [key = ''] = inner.keys;
  return { param: dotted([...path, key.slice(0, MAX_KEY_CHARACTERS)]), message: 'is not a known field' };
}

/** If one shape of a union fits up to an inner field, that field's error is more precise than "none of the forms". */
function innermost(issue: Issue, path: Path): { issue: Issue; path: Path } {
  if (issue.code !== 'invalid_union') return { issue, path };
  for (const [inner] of issue.errors) {
    if (inner !== undefined && inner.path.length > 0) return innermost(inner, [...path, ...inner.path]);
  }
  return { issue, path };
}

function dotted(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? String(step) : `${text}.${String(step)}`;
  }, '');
}
