-- Human grades of the quality of comments, from 1 to 5 (commenting, appendix A.1; AAC-08).
-- Key: project, source, thread_id, comment_id. Partitioned by project.
create table comment_grades (
    project varchar not null, -- Labelling project: references or generated comments
    source varchar not null, -- Site or corpus of the row
    thread_id varchar not null, -- threads.thread_id
    comment_id varchar not null, -- comments.comment_id, or generated_comments.generated_id
    grade double not null, -- Mean of the grades
    grades double[] not null, -- Grades in the order of raters
    raters varchar[] not null, -- Pseudonyms of the raters, in order
    tool varchar not null -- Tool of the grades: label_studio, file, simulated, …
);
