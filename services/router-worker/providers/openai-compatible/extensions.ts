/**
 * Fields that some servers of this API have and others refuse or ignore. `reasoning`: the object, in place of `reasoning_effort`; `cache_control`: marks on texts
 * and tools, and at the top; `reasoning_details`: reasoning that is sent back in the form in which it came; `reasoning_content`: its text alone.
 */
export const EXTENSIONS = ['reasoning', 'cache_control', 'reasoning_details', 'reasoning_content'] as const;
export type Extension = (typeof EXTENSIONS)[number];
