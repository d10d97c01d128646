#include "ranks/post.h"

enum status post_send(const struct post *post, int to, enum letter_kind kind, const char *text,
                      struct error *error)
{
    return post->send(post->context, to, kind, text, error);
}
