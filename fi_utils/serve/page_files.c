/* SPDX-License-Identifier: Apache-2.0 */
/* page_files.c - the files of the page, which the assembler takes as they are. */
#include <string.h>

#include "serve/http.h"

/* The path is from the top of the tree, where compilers run; SConscript knows of these files. */
#define EMBED(symbol, file)                                                                        \
	extern const char symbol[], symbol##_end[];                                                \
	__asm__(".pushsection .rodata\n"                                                           \
		".globl " #symbol ", " #symbol "_end\n.hidden " #symbol ", " #symbol               \
		"_end\n" #symbol ":\n.incbin \"fi_utils/serve/page/" file "\"\n" #symbol "_end:\n" \
		".byte 0\n.popsection\n")

EMBED(page_index_html, "index.html");
EMBED(page_page_css, "page.css");
EMBED(page_page_js, "page.js");

struct embedded {
	const char *path, *type, *bytes, *end;
};

static const struct embedded embedded[] = {
	{"/", "text/html; charset=utf-8", page_index_html, page_index_html_end},
	{"/page.css", "text/css; charset=utf-8", page_page_css, page_page_css_end},
	{"/page.js", "text/javascript; charset=utf-8", page_page_js, page_page_js_end},
};

bool page_file_find(const char *path, struct page_file *file)
{
	size_t i;

	for (i = 0; i < sizeof(embedded) / sizeof(embedded[0]); i++) {
		if (strcmp(embedded[i].path, path) != 0)
			continue;
		*file = (struct page_file){embedded[i].type, embedded[i].bytes,
					   (size_t)(embedded[i].end - embedded[i].bytes)};
		return true;
	}
	return false;
}
